#!/usr/bin/env bash
# Runs the benchmarks with the Python that the build was made for; arguments go to bench/run.py.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(sed -n 's/^VRAMFIT_PYTHON = "\(.*\)"$/\1/p' .cargo/config.toml)
exec "$python" bench/run.py "$@"
