#!/usr/bin/env bash
# Sets up what a build needs, once: a C++ compiler, Rust, and a Python environment with PyTorch 2.11.
# usage: scripts/setup.sh build|test
#
# Which PyTorch: the one of $VRAMFIT_PYTHON, else of the active virtual environment, else .venv in this
# checkout, which is made and filled from PyPI when it is missing. The choice is written to
# .cargo/config.toml, so that plain cargo commands work afterwards too.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { # message, hint
    printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
    exit 3
}

torch_root() { # python → folder of PyTorch 2.11, or nothing
    "$1" - 2>/dev/null <<'PYTHON'
import importlib.metadata, importlib.util
if importlib.metadata.version("torch").split("+")[0].startswith("2.11."):
    print(importlib.util.find_spec("torch").submodule_search_locations[0])
PYTHON
}

packages_missing() { # python, requirements file → names of missing packages
    "$1" - "$2" <<'PYTHON'
import importlib.metadata, pathlib, sys
for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
    name = line.split("==")[0].strip()
    if "==" in line:
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            print(name, end=" ")
PYTHON
}

check_tools() {
    command -v cargo >/dev/null ||
        fail "no cargo found" "install Rust from https://rustup.rs"
    command -v "${CXX:-c++}" >/dev/null ||
        fail "no C++ compiler named \`${CXX:-c++}\` found" \
            "install one (Debian, Ubuntu: apt install g++) or set CXX"
}

make_environment() { # requirements file
    local stamp=.venv/installed-$(cat requirements*.txt | cksum | cut -d' ' -f1)-$1
    [ -e "$stamp" ] && return
    command -v python3 >/dev/null ||
        fail "no python3 found" "install Python 3.10 or later, or set VRAMFIT_PYTHON"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        fail "$(python3 --version) is too old" \
            "install Python 3.10 or later, or set VRAMFIT_PYTHON"
    if [ ! -x .venv/bin/python ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        rm -rf .venv
        python3 -m venv .venv ||
            fail "python3 cannot make a virtual environment" \
                "install its venv module (Debian, Ubuntu: apt install python3-venv)"
    fi
    if [ -z "$(torch_root .venv/bin/python)" ]; then
        local free_mib
        free_mib=$(df -Pk . | awk 'NR == 2 { print int($4 / 1024) }')
        # The environment with its CUDA libraries takes 6.5 GiB, the download besides half of that.
        [ "$free_mib" -ge 10240 ] ||
            fail "$free_mib MiB are free here, PyTorch needs 10240" \
                "free some space, or point VRAMFIT_PYTHON at a Python that has PyTorch 2.11"
    fi
    echo "installing $1 into .venv (PyTorch is a download of about 3 GB)" >&2
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$1" >&2 ||
        fail "pip could not install $1" "see its messages above"
    touch "$stamp"
}

check_tools
requirements=requirements.txt
[ "${1:-build}" = test ] && requirements=requirements-test.txt

python=${VRAMFIT_PYTHON:-}
root=
if [ -n "$python" ]; then
    root=$(torch_root "$python" || true)
    [ -n "$root" ] ||
        fail "VRAMFIT_PYTHON=$python has no PyTorch 2.11" \
            "install torch==2.11.0 there, or unset VRAMFIT_PYTHON to have one installed here"
elif [ -n "${VIRTUAL_ENV:-}" ] && root=$(torch_root "$VIRTUAL_ENV/bin/python") && [ -n "$root" ]; then
    python=$VIRTUAL_ENV/bin/python
else
    make_environment "$requirements"
    python=$PWD/.venv/bin/python
    root=$(torch_root "$python" || true)
    [ -n "$root" ] ||
        fail "$python has no PyTorch 2.11" "remove .venv, so that it is made anew"
fi

missing=$(packages_missing "$python" "$requirements")
[ -z "$missing" ] ||
    fail "$python lacks ${missing% }" "$python -m pip install -r $requirements"

# Looks at the pages of `--report`. Fonts are not among what it needs to start.
install_browser() {
    local name
    for name in "${VRAMFIT_CHROMIUM:-chromium}" chromium-browser google-chrome google-chrome-stable; do
        command -v "$name" >/dev/null && return
    done
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
        fail "no Chromium found" \
            "install one (Debian: apt install chromium) or let VRAMFIT_CHROMIUM name it"
    echo "installing Chromium" >&2
    apt-get update -qq >&2 &&
        DEBIAN_FRONTEND=noninteractive \
            apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >&2 ||
        fail "apt could not install Chromium" "see its messages above"
}

if [ "${1:-build}" = test ]; then
    install_browser
    stamp=.third-party/installed-$(cksum <requirements-third-party.txt | cut -d' ' -f1)
    if [ ! -e "$stamp" ]; then
        rm -rf .third-party
        "$python" -m pip install --quiet --disable-pip-version-check --no-deps \
            --target .third-party -r requirements-third-party.txt >&2 ||
            fail "pip could not install requirements-third-party.txt" "see its messages above"
        touch "$stamp"
    fi
fi

config="# Written by scripts/setup.sh.
[env]
LIBTORCH = \"$root\"
VRAMFIT_PYTHON = \"$python\""
if [ "$(cat .cargo/config.toml 2>/dev/null)" != "$config" ]; then
    mkdir -p .cargo
    printf '%s\n' "$config" >.cargo/config.toml
fi
