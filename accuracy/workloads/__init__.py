"""The published workloads, made again from what their sources say: shapes, types, order of steps.

Each function trains or computes on the GPU and answers with figures in bytes, named as the column
`quantity` of the published rows names them.
"""
