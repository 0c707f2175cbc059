#!/bin/sh
# Makes a virtual environment with the first Python on PATH that is new enough.
#   make_venv.sh DIRECTORY
set -eu
venv=$1
found=
for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    found="$found $python ($version)"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || continue
    echo "Making $venv with $python ($version)" >&2
    if "$python" -m venv "$venv"; then
        exit 0
    fi
    rm -rf "$venv"
    echo "error: $python cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
done
echo "error: gpuctl needs Python 3.11 or newer; found:${found:- none}" >&2
echo "hint: install one, or name it: make PYTHON=/path/to/python3.11 ..." >&2
exit 1
