#!/usr/bin/env bash
# Sets up the environments with other versions of PyTorch that programs are tested with, once: one
# folder in .venvs for each list in scripts/frameworks.
# usage: scripts/frameworks.sh [NAME...]     (all lists unless some are named, e.g. torch-2.6)
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { # message, hint
    printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
    exit 3
}

make_environment() { # name
    local list=scripts/frameworks/$1.txt folder=.venvs/$1
    [ -e "$list" ] ||
        fail "there is no list \`$list\`" "name one of: $(cd scripts/frameworks && ls | sed 's/\.txt$//' | tr '\n' ' ')"
    local stamp=$folder/installed-$(cksum <"$list" | cut -d' ' -f1)
    [ -e "$stamp" ] && return
    command -v python3 >/dev/null ||
        fail "no python3 found" "install Python 3.10 to 3.13"
    python3 -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' ||
        fail "$(python3 --version) does not have wheels of every version" "install Python 3.10 to 3.13"
    mkdir -p .venvs
    local free_mib
    free_mib=$(df -Pk .venvs | awk 'NR == 2 { print int($4 / 1024) }')
    # One environment takes 5 to 7 GiB, the download besides half of that, which is not kept.
    [ "$free_mib" -ge 10240 ] ||
        fail "$free_mib MiB are free here, $1 needs 10240" "free some space"
    if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
        rm -rf "$folder"
        python3 -m venv "$folder" ||
            fail "python3 cannot make a virtual environment" \
                "install its venv module (Debian, Ubuntu: apt install python3-venv)"
    fi
    echo "installing $list into $folder (a download of about 3 GB)" >&2
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
        --no-cache-dir -r "$list" >&2 ||
        fail "pip could not install $list" "see its messages above"
    touch "$stamp"
}

if [ $# -eq 0 ]; then
    for list in scripts/frameworks/*.txt; do
        make_environment "$(basename "$list" .txt)"
    done
else
    for name in "$@"; do make_environment "$name"; done
fi
