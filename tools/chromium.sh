#!/bin/sh
# Sees to it that the browser tests have a Chromium: finds one, or installs Debian's where that is possible.
# Without one they are skipped; with GPUCTL_REQUIRE_BROWSER set that is an error.
set -eu

without() {
    echo "chromium: $1; the browser tests will be skipped" >&2
    [ -z "${GPUCTL_REQUIRE_BROWSER:-}" ] || { echo "error: GPUCTL_REQUIRE_BROWSER is set" >&2; exit 1; }
    exit 0
}

for name in chromium chromium-browser google-chrome chrome; do
    if command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done
command -v apt-get >/dev/null 2>&1 || without "none here, and no apt-get to install it with"
if [ "$(id -u)" = 0 ]; then
    root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    root="sudo -n"
else
    without "none here, and installing it (apt-get install chromium) needs root"
fi
echo "chromium: installing Debian's package for the browser tests" >&2
export DEBIAN_FRONTEND=noninteractive
# a new machine may be busy with packages of its own, and a mirror may not answer the first time
patient="-qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5"
install() {
    # shellcheck disable=SC2086 # lists of words
    {
        $root apt-get $patient update &&
            $root apt-get $patient install -y --no-install-recommends chromium fonts-dejavu-core
    } </dev/null >/dev/null
}
install || { sleep 20; install; } || without "apt-get could not install it"
