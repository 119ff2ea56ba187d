import csv
rows = """b200|180 GB, cloud|2.8.0|fp32 66.24|fp16 1627.64|bf16 1696.03
v100-32gb|V100S 32 GB|2.2.0|fp32 13.55|fp16 88.92|bf16 9.85
t4|cloud|2.8.0|fp32 4.17|fp16 41.91|bf16 2.46
a100-40gb|container|2.2.0|fp32 18.11|fp16 247.63|bf16 246.33
rtx-5090-laptop|laptop|2.8.0|fp32 28.58|fp16 95.68|bf16 97.13
rtx-2080|container|2.8.0|fp32 9.23|fp16 39.03|bf16 5.14
rtx-3080-ti|container|2.8.0|fp32 24.37|fp16 75.56|bf16 76.47
a100-80gb|container|2.8.0|fp32 19.18|fp16 258.74|bf16 264.53
rtx-3090|own machine|2.6.0|fp32 24.46|fp16 75.64|bf16 76.34
rtx-3090|container|2.8.0|fp32 24.84|fp16 75.88|bf16 76.68
rtx-4070-super|own machine|2.5.1|fp32 24.60|fp16 75.93|bf16 76.76
rtx-4060-laptop|laptop|2.6.0|fp32 9.08|fp16 30.82|bf16 30.87
rtx-3060-laptop|laptop|2.5.1|fp32 7.83|fp16 25.70|bf16 25.85
rtx-4090|own machine|2.4.0|fp32 55.01|fp16 165.08|bf16 170.06
rtx-4090|own machine|2.4.1|fp32 54.77|fp16 171.06|bf16 173.31
rtx-4090|container|2.4.0|fp32 46.48|fp16 162.35|bf16 162.39
rtx-4090|container|2.8.0|fp32 54.67|fp16 167.80|bf16 163.09
rtx-3050-ti-laptop|laptop|2.6.0|fp32 5.99|fp16 18.34|bf16 18.67
rtx-5090|container|2.8.0|fp32 69.16|fp16 224.41|bf16 236.03
h100|container; fp32 is TF32 by its size|2.8.0|tf32 403.74|fp16 761.84|bf16 789.24
rtx-pro-6000|own machine|2.8.0|fp32 77.24|fp16 315.51|bf16 417.98"""
path="/work/wt/throughput/accuracy/published/kernels-matmul.csv"
with open(path,"w",newline="") as f:
    w=csv.writer(f,lineterminator="\n")
    w.writerow(["source","profile","torch","type","tflops","note"])
    for line in rows.splitlines():
        profile,note,torch,*values=line.split("|")
        for v in values:
            t,x=v.split()
            w.writerow(["torch-performance",profile,torch,t,x,note])
print(open(path).read().count("\n"))
