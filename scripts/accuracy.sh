#!/usr/bin/env bash
# Runs the workloads of published measurements with the PyTorch that the build was made for and, for memory, with the
# older ones that some of them used, which are installed first. Arguments go to accuracy/run.py, or after `rates` to
# accuracy/rates_run.py; without any, all are run.
set -euo pipefail
cd "$(dirname "$0")/.."
VRAMFIT_PYTHON=$(sed -n 's/^VRAMFIT_PYTHON = "\(.*\)"$/\1/p' .cargo/config.toml)
export VRAMFIT_PYTHON
if [[ ${1-} != rates ]]; then
    scripts/frameworks.sh torch-2.6 torch-2.8
    "$VRAMFIT_PYTHON" -B accuracy/run.py "$@"
    [[ $# == 0 ]] || exit 0
fi
scripts/frameworks.sh torch-2.6
exec "$VRAMFIT_PYTHON" -B accuracy/rates_run.py "${@:2}"
