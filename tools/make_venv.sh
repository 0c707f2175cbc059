#!/bin/sh
# Makes a virtual environment with the first Python on PATH that is new enough.
#   make_venv.sh DIRECTORY
# Where the distribution has the same version, with its build: that is optimized by profiles. With one that pyenv has built
# without being told to do the same, plain Python takes a quarter longer, and the tests 4 to 20 % (two measurements).
# PYTHON=... names another; it is taken as it is.
set -eu
venv=$1
distribution=${DISTRIBUTION_PYTHON-/usr/bin/python3}

version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

make_with() {
    echo "Making $venv with $1 ($version)" >&2
    "$1" -m venv "$venv" || { rm -rf "$venv"; return 1; }
}

found=
for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    version=$(version_of "$python") || continue
    found="$found $python ($version)"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || continue
    if [ -z "${PYTHON:-}" ] && [ "$(version_of "$distribution")" = "$version" ]; then
        # Debian has the module in a package of its own, which may not be there
        make_with "$distribution" >/dev/null && exit 0
    fi
    make_with "$python" && exit 0
    echo "error: $python cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
done
echo "error: gpuctl needs Python 3.11 or newer; found:${found:- none}" >&2
echo "hint: install one, or name it: make PYTHON=/path/to/python3.11 ..." >&2
exit 1
