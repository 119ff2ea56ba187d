#!/usr/bin/env bash
# Compares the GPU of this machine with its virtual twin, and tries a few plans on it.
# usage: scripts/gpu-check.sh [FOLDER]   (default: gpu-check-results)
#
# Needs what `make build` leaves in target/release and a Python with PyTorch 2.11, nothing else: no Rust,
# no compiler. $VRAMFIT_PYTHON names the Python (default: python3), $VRAMFIT_BIN another folder of
# binaries. Ends within 8 minutes. Status 0: all ran; 3: the machine failed.
set -uo pipefail
cd "$(dirname "$0")/.."

bin=$(cd "${VRAMFIT_BIN:-target/release}" 2>/dev/null && pwd)
results=${1:-gpu-check-results}
python=${VRAMFIT_PYTHON:-python3}

fail() { # message, hint
    printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
    exit 3
}

for file in vramfit vramfit-worker libvramfit_vgpu.so; do
    [ -e "$bin/$file" ] || fail "${bin:-target/release} has no $file" "\`make build\` makes it"
done
mkdir -p "$results" || exit 3

# The worker knows where the PyTorch lies that it was built with; elsewhere it has to be told.
if ldd "$bin/vramfit-worker" | grep -q 'libtorch.*not found'; then
    torch=$("$python" - 2>/dev/null <<'PYTHON'
import importlib.metadata, importlib.util
if importlib.metadata.version("torch").split("+")[0].startswith("2.11."):
    print(importlib.util.find_spec("torch").submodule_search_locations[0])
PYTHON
    )
    [ -n "$torch" ] ||
        fail "$python has no PyTorch 2.11" "install torch==2.11.0, or set VRAMFIT_PYTHON"
    export LD_LIBRARY_PATH="$torch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    echo "worker: libtorch of $torch"
fi

# What the driver says by itself, both versions of NVML's memory question among it.
{
    nvidia-smi --query-gpu=index,name,driver_version,vbios_version,memory.total,memory.reserved,memory.used,memory.free,clocks.max.sm,power.limit,ecc.mode.current,mig.mode.current,display_active,compute_mode \
        --format=csv 2>&1 || true
    timeout 20 "$python" - <<'PYTHON' 2>&1 || true
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
class V1(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]
class V2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [
        (name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")]
nvml.nvmlInit_v2()
count = ctypes.c_uint()
nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
for index in range(count.value):
    handle, v1, v2 = ctypes.c_void_p(), V1(), V2()
    v2.version = ctypes.sizeof(V2) | 2 << 24
    nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
    nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(v1))
    nvml.nvmlDeviceGetMemoryInfo_v2(handle, ctypes.byref(v2))
    for name, memory in (("v1", v1), ("v2", v2)):
        fields = {field: getattr(memory, field) for field, _ in memory._fields_ if field != "version"}
        print(f"GPU {index} NVML memory {name}: {fields}")
PYTHON
} >"$results/driver.txt"

status=0
try() { # seconds, file for what it prints, arguments of vramfit…
    local limit=$1 file=$2 begun=$SECONDS end=0
    shift 2
    # -k: also what does not heed the polite signal.
    timeout -k 5 "$limit" "$bin/vramfit" "$@" >"$results/$file" 2>"$results/${file%.*}.log" || end=$?
    case $end in
    0) ;;
    1) ;; # it does not fit: an answer
    *) status=3 ;;
    esac
    printf '%-20s status %-3s %3s s  vramfit %s\n' "$file" "$end" $((SECONDS - begun)) "$*"
}

# Without a GPU nothing else makes sense. The document is written after each point, so that what the
# limit cuts off is not lost, and a second call goes on.
try 300 gpu-check.txt gpu-check --output "$results/gpu-check.json"
cat "$results/gpu-check.txt"
if [ ! -e "$results/gpu-check.json" ]; then
    cat "$results/gpu-check.log" >&2
    exit 3
fi
try 60 plan-gpt2-small.json plan --model gpt2-small --target-batch 64 --json
try 40 plan-resnet50.json plan --model resnet50 --target-batch 256 --json
try 20 check-fits.json check --model gpt2-small --micro-batch 4 --precision bf16 --json
try 20 check-too-large.json check --model gpt2-small --micro-batch 4096 --json
echo "results in $results"
exit $status
