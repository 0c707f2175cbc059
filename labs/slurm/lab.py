"""A real Slurm on this machine for the length of a test run: starts it, runs programs in it, stops it."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

HERE = Path(__file__).resolve().parent
PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "mariadbd", "munged")
PORTS = (*range(1, 6), 90, 91, 92)


def missing() -> str | None:
    """Why no lab can run here, or None."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    absent = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if absent:
        return f"no {', '.join(absent)} on this machine: GPUCTL_LABS=1 sh tools/slurm_packages.sh"
    return "a Slurm lab needs root" if os.geteuid() else None


class Lab:
    """The cluster; a context manager. Its folder is removed at the end."""

    def __init__(self) -> None:
        # not under pytest's own folder, nor TMPDIR: they may be closed to the users whom the jobs run as, and too long
        # for the name of a socket
        self.folder = Path(tempfile.mkdtemp(prefix="gpuctl-slurm-", dir="/tmp"))
        self.work = self.folder / "jobs"
        self.env = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"), "BASEPORT": str(_free_ports())}
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Lab:
        self._guard = subprocess.Popen(
            [HERE / "slurmlab.sh", "guard", self.folder, str(os.getpid())],
            env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            self._script("start")
        except BaseException:
            self.stop()
            raise
        shutil.copy(HERE / "job.sh", self.work)
        record = self.work / "ran.tsv"
        record.touch()
        record.chmod(0o666)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End all daemons; also after a start that failed half-way."""
        self._script("stop")
        if self._guard is not None:
            self._guard.terminate()
            self._guard.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command: str, user: str | None = None) -> str:
        """Run a program of Slurm's; return what it prints.

        Raises:
            RuntimeError: it failed.
        """
        done = subprocess.run(
            command, env=self.env, cwd=self.work, user=user, group=_group(user), extra_groups=[] if user else None,
            stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{command}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode(errors="replace")

    def dump(self, *tables: str) -> str:
        """Return tables of slurmdbd's database as mysqldump writes them."""
        socket_file = self.folder / "run" / "mysql.sock"
        command = ["mariadb-dump", "--no-defaults", f"--socket={socket_file}", "--user=root", "slurm_acct_db"]
        return self.run(*command, *tables)

    def _script(self, command: str) -> None:
        done = subprocess.run(
            [HERE / "slurmlab.sh", command, self.folder],
            env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            check=False, timeout=120,
        )  # fmt: skip
        if done.returncode:
            logs = sorted((self.folder / "log").glob("*.log"))
            tails = [
                f"--- {log.name}\n" + "\n".join(log.read_text("utf-8", "replace").splitlines()[-8:]) for log in logs
            ]
            raise RuntimeError("\n".join([f"slurmlab.sh {command}: {done.stderr.decode(errors='replace')}", *tails]))


def _group(user: str | None) -> int | None:
    import pwd

    return pwd.getpwnam(user).pw_gid if user else None


def _free_ports() -> int:
    for base in random.sample(range(18000, 30000, 100), 60):
        try:
            for port in PORTS:
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", base + port))
        except OSError:
            continue
        return base
    raise RuntimeError("no free ports for a Slurm lab")
