#!/usr/bin/env bash
# Make or refresh a virtual environment: venv.sh DIRECTORY REQUIREMENTS [LOWEST MINOR VERSION OF PYTHON 3]
# The stamp DIRECTORY/.<requirements>.stamp is written last, so that an interrupted installation is repeated.
set -euo pipefail

directory=$1
requirements=$2
minor=${3:-11}

say() { printf 'venv: %s\n' "$*" >&2; }

can_install() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; }

find_python() {
    local candidate
    # The distribution's own first: it is built with profile-guided optimisation, and playbooks take a quarter less CPU
    # time than with a plainly compiled one. A pyenv shim may exist for a version that isn't selected, so try each.
    for candidate in /usr/bin/python3 python3.11 python3 python3.12 python3.13; do
        # Somebody who sets PYTHON means it.
        candidate=${PYTHON:-$candidate}
        if "$candidate" -c "import sys; sys.exit(not (3, $minor) <= sys.version_info[:2])" 2>/dev/null &&
            { can_install || "$candidate" -c 'import ensurepip' 2>/dev/null; }; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return 0
        fi
    done
    return 1
}

# install WHY PACKAGE...: install Debian packages where that is possible, else say what to do.
install() {
    local why=$1
    shift
    if ! can_install; then
        say "$why: install $* as root and run this again, or set PYTHON to a Python 3.$minor or newer that has it"
        exit 1
    fi
    say "$why: installing $*"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

if [ ! -x "$directory/bin/python" ] || ! "$directory/bin/python" -m pip --version >/dev/null 2>&1; then
    if ! python=$(find_python); then
        install "no Python 3.$minor or newer that can make virtual environments" python3 python3-venv
        python=$(find_python) || { say "this distribution's python3 is older than 3.$minor: set PYTHON"; exit 1; }
    fi
    if ! "$python" -c 'import ensurepip' 2>/dev/null; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        install "$python can't make virtual environments, because it has no ensurepip" "$package"
    fi
    say "making $directory with $python"
    "$python" -m venv --clear "$directory"
fi
say "installing $requirements into $directory"
"$directory/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
touch "$directory/.$(basename "$requirements").stamp"
