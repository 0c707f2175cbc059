#!/bin/sh
# Sees to it that the Slurm lab of labs/slurm can run: installs Debian's packages where they are absent.
# Does nothing unless CI=true or GPUCTL_LABS=1 is set: no one's machine gets a database server unasked.
# Without the packages the lab tests are skipped; with GPUCTL_LABS=1 that is an error.
set -eu

programs="slurmctld slurmd slurmdbd mariadbd munged"
packages="slurm-wlm slurmdbd mariadb-server munge"

without() {
    echo "slurm: $1; the Slurm lab tests will be skipped" >&2
    [ "${GPUCTL_LABS:-}" != 1 ] || { echo "error: GPUCTL_LABS is set" >&2; exit 1; }
    exit 0
}

all_here() {
    for name in $programs; do
        command -v "$name" >/dev/null 2>&1 || [ -x "/usr/sbin/$name" ] || return 1
    done
}

[ "${CI:-}" = true ] || [ "${GPUCTL_LABS:-}" = 1 ] || exit 0
! all_here || exit 0
command -v apt-get >/dev/null 2>&1 || without "not installed, and no apt-get to install it with"
[ "$(id -u)" = 0 ] || without "not installed, and installing it ($packages) needs root"

# The packages start their services unless this file says no; one that is there already is its owner's, and stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' INT TERM
    { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"; } || without "$policy cannot be written"
fi
echo "slurm: installing Debian's packages for the lab tests" >&2
export DEBIAN_FRONTEND=noninteractive
# a new machine may be busy with packages of its own, and a mirror may not answer the first time
patient="-qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5"
install() {
    # shellcheck disable=SC2086 # lists of words
    { apt-get $patient update && apt-get $patient install -y --no-install-recommends $packages; } </dev/null >/dev/null
}
install || { sleep 20; install; } || without "apt-get could not install it"
all_here || without "apt-get installed it, but not all of: $programs"
