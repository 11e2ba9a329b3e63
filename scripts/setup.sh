#!/usr/bin/env bash
# Prepares the virtual environment that every make target uses, and says plainly what is missing.
#   scripts/setup.sh check       check Rust and the linker
#   scripts/setup.sh venv        the same, then make .venv with a new pip in it
#   scripts/setup.sh pip ARGS    run `pip install ARGS` in .venv
#   scripts/setup.sh extension FOLDER    put the core that cargo built in target/FOLDER into the package
# VENV names another environment than .venv, relative to the repository.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}

missing() {
    printf '\n%s is missing.\n' "$1" >&2
    printf '%s\n' "${@:2}" >&2
    exit 1
}

check_rust() {
    command -v cargo >/dev/null || missing "Rust (cargo)" \
        "Get it from https://rustup.rs, open a new shell, and run make again."
    local needed found
    needed=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml | head -n 1)
    found=$(rustc --version | cut -d' ' -f2 | cut -d- -f1) || missing "A working Rust toolchain" \
        "rustc does not start; try: rustup update stable"
    [ "$(printf '%s\n' "$needed" "$found" | sort -V | head -n 1)" = "$needed" ] || missing "Rust $needed or newer" \
        "Found $found; get a newer one by: rustup update stable"
    case "${RUSTFLAGS:-}" in
    *target-cpu=native*)
        echo "RUSTFLAGS holds target-cpu=native: the core picks instruction sets at run time, and its results" \
            "must not depend on the machine that built it. Unset it and run make again." >&2
        exit 1
        ;;
    esac
}

check_linker() {
    command -v cc >/dev/null || missing "A C linker (cc)" \
        "Debian, Ubuntu: apt-get install build-essential" "Fedora: dnf install gcc" "macOS: xcode-select --install"
}

# The first interpreter that is new enough and can make an environment; PYTHON=... comes first.
find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3.12 python3.13 python3.14 python3 python; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    missing "Python 3.11 or newer, with its venv module," \
        "Debian, Ubuntu: apt-get install python3 python3-venv" "Others: https://www.python.org/downloads/" \
        "Or name one: make PYTHON=/path/to/python3.11"
}

pip_install() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" || {
        printf '\npip could not install: %s\n' "$*" >&2
        printf '%s\n' "The first run needs a connection to a Python package index; pip's message is above." \
            "Behind a mirror or a proxy, set PIP_INDEX_URL or HTTPS_PROXY and run make again." >&2
        exit 1
    }
}

case "${1:-}" in
check)
    check_rust
    check_linker
    ;;
venv)
    check_rust
    check_linker
    python=$(find_python)
    echo "Making $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    pip_install --upgrade "pip>=25.1"
    ;;
pip)
    shift
    pip_install "$@"
    ;;
extension)
    for built in "${CARGO_TARGET_DIR:-target}/$2"/{lib_core.so,lib_core.dylib,_core.dll}; do
        [ ! -e "$built" ] || break
    done
    case "$built" in
    *.dll) place=python/stickbreak/_core.pyd ;;
    *) place=python/stickbreak/_core.abi3.so ;;
    esac
    # A new file in the place of the old one: processes that have that one open go on.
    cmp --silent "$built" "$place" || { cp "$built" "$place.new" && mv "$place.new" "$place"; }
    ;;
*)
    sed -n '3,7p' "$0" >&2
    exit 2
    ;;
esac
