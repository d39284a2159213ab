#!/usr/bin/env bash
# Make or refresh a virtual environment: venv.sh DIR REQUIREMENTS [MINIMUM MINOR VERSION OF PYTHON 3]
# The stamp DIR/.<requirements name>.stamp is written last, so an interrupted installation is repeated.
set -euo pipefail

directory=$1
requirements=$2
minor=${3:-11}

say() { printf 'venv: %s\n' "$*" >&2; }

find_python() {
    local candidate
    # PYTHON first: somebody who sets it means it. A pyenv shim may exist for a version that isn't active, so try each.
    for candidate in ${PYTHON:-} python3.11 python3 python3.12 python3.13; do
        if "$candidate" -c "import sys; sys.exit(not (3, $minor) <= sys.version_info[:2])" 2>/dev/null; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return 0
        fi
    done
    say "no Python 3.$minor or newer on PATH: install it (Debian 12: apt-get install python3.11) or set PYTHON=/path/to/python"
    return 1
}

install_venv_package() {
    local package
    package=$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        say "$1 has no ensurepip, so it can't make virtual environments: install the package $package (as root) and run this again"
        return 1
    fi
    say "$1 has no ensurepip: installing the package $package"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$package" >/dev/null
}

if [ ! -x "$directory/bin/python" ] || ! "$directory/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    "$python" -c 'import ensurepip' 2>/dev/null || install_venv_package "$python"
    say "making $directory with $python"
    "$python" -m venv --clear "$directory"
fi
say "installing $requirements into $directory"
"$directory/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
touch "$directory/.$(basename "$requirements").stamp"
