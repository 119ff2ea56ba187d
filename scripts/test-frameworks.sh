#!/usr/bin/env bash
# Tests the frameworks' programs, then each other PyTorch of scripts/frameworks, which is installed first.
# usage: scripts/test-frameworks.sh [--others] [--remove]
#     --others    the other PyTorches alone, where `make test` has run the rest
#     --remove    each environment once its tests have passed, where the disk does not hold all of them
set -euo pipefail
cd "$(dirname "$0")/.."

others='' remove=''
for option; do
    case $option in
        --others) others=yes ;;
        --remove) remove=yes ;;
        *) echo "error: unknown option \`$option\`" >&2 && exit 2 ;;
    esac
done

run() { # environment, arguments of cargo test
    VRAMFIT_FRAMEWORKS=$1 cargo test --release "${@:2}"
}

[ -n "$others" ] || run main --package vramfit --test frameworks
for list in scripts/frameworks/*.txt; do
    name=$(basename "$list" .txt)
    scripts/frameworks.sh "$name"
    run "$name" --package vramfit-vgpu each_pytorch
    run "$name" --package vramfit --test frameworks each_pytorch
    if [ -n "$remove" ]; then rm -r ".venvs/$name"; fi
done
