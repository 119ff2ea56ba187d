#!/usr/bin/env bash
# Tests the frameworks' programs, then each other PyTorch of scripts/frameworks, which is installed first.
# usage: scripts/test-frameworks.sh [--remove]     (--remove: each environment once its tests have passed,
#                                                   where the disk does not hold all of them)
set -euo pipefail
cd "$(dirname "$0")/.."

run() { # environment, arguments of cargo test
    VRAMFIT_FRAMEWORKS=$1 cargo test --release "${@:2}"
}

run main --package vramfit --test frameworks
for list in scripts/frameworks/*.txt; do
    name=$(basename "$list" .txt)
    scripts/frameworks.sh "$name"
    run "$name" --package vramfit-vgpu each_pytorch
    run "$name" --package vramfit --test frameworks each_pytorch
    if [ "${1:-}" = --remove ]; then rm -r ".venvs/$name"; fi
done
