#!/usr/bin/env bash
# Runs the workloads of published measurements with the PyTorch that the build was made for and with the older
# ones that some of them used, which are installed first. Arguments go to accuracy/run.py.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/frameworks.sh torch-2.6 torch-2.8
VRAMFIT_PYTHON=$(sed -n 's/^VRAMFIT_PYTHON = "\(.*\)"$/\1/p' .cargo/config.toml)
export VRAMFIT_PYTHON
exec "$VRAMFIT_PYTHON" -B accuracy/run.py "$@"
