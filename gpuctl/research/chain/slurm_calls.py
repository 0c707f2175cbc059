"""The programs of Slurm that a chain needs: sbatch, scancel, squeue, sacct, scontrol."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.read.programs import output
from gpuctl.research.chain.journal import is_job_id
from gpuctl.research.chain.queue_now import read_queue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gpuctl.research.chain.queue_now import QueuedJob

_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
_OTHERWISE = {
    **dict.fromkeys(("SBATCH_ARRAY_INX", "SBATCH_WAIT"), "no chain can do with it"),
    **dict.fromkeys(("SBATCH_CLUSTERS", "SLURM_CLUSTERS"), "a chain is of the cluster that it is driven on"),
    **dict.fromkeys((f"SQUEUE_{word}" for word in ("ACCOUNT", "LICENSES", "NAMES", "PARTITION", "QOS", "USERS")),
                    "squeue would not show the whole queue"),
}  # fmt: skip
"""Environment variables that change sbatch and squeue without an option."""
_FIELDS = ("JobIDRaw", "JobName", "State", "Start", "End", "ExitCode")
_UNSURE = ("timed out", "unable to contact", "zero bytes", "connection", "communication", "try again", "temporar")


class RefusedError(InputError):
    """Slurm has refused a job permanently."""


class UnsureError(InputError):
    """It is unknown whether Slurm has accepted a job."""


def check_environment(environ: Mapping[str, str]) -> None:
    """Check that sbatch and squeue work as requested.

    Raises:
        UsageError: an environment variable changes their behaviour.
    """
    for name, why in _OTHERWISE.items():
        if name in environ:
            raise UsageError(f"{name} is set in the environment: {why}", hint=f"unset {name}")


@dataclass(frozen=True)
class Ended:
    """A job of the accounting.

    Attributes:
        job: its id.
        name: its name.
        state: in Slurm's words: COMPLETED, FAILED …
        start_s: its start, since 1970; None: it never started.
        end_s: its end; None: not ended.
    """

    job: str
    name: str
    state: str
    start_s: int | None
    end_s: int | None


@dataclass(frozen=True)
class Slurm:
    """How to reach Slurm.

    Attributes:
        timeout_s: time limit per call, s.
    """

    timeout_s: float = 60.0

    def queue(self) -> list[QueuedJob]:
        """Jobs in the queue and jobs that ended recently; pending tasks of an array are one record.

        Raises:
            InputError: squeue does not answer in JSON.
        """
        command = ["squeue", "--json", "--all", "--array", "--states=all"]
        return read_queue(output(command, timeout_s=self.timeout_s, settings=_ENVIRONMENT), "squeue")

    def accounting(self, *, job: str = "", name: str = "", since_s: float = 0) -> list[Ended]:
        """Jobs in the accounting, by ID or name.

        Raises:
            InputError: sacct does not answer.
        """
        which = [f"--jobs={job}"] if job else [f"--name={name}"]
        since = datetime.fromtimestamp(max(since_s - 60, 0), UTC).strftime("%Y-%m-%dT%H:%M:%S")
        command = [
            "sacct", "--allocations", "--noheader", "--parsable2", f"--starttime={since}",
            f"--format={','.join(_FIELDS)}", *which,
        ]  # fmt: skip
        text = output(command, timeout_s=self.timeout_s, settings=_ENVIRONMENT).decode("utf-8", "replace")
        found = []
        for line in text.splitlines():
            cells = line.split("|")
            if len(cells) == len(_FIELDS):
                if not is_job_id(cells[0]):
                    raise InputError(f"sacct shows a job id {cells[0][:40]!r}, expected a number", hint="see sacct -X")
                start, end = (int(cell) if is_job_id(cell) else None for cell in cells[3:5])
                found.append(Ended(cells[0], cells[1], cells[2].split(" ")[0], start, end))
        return found

    def priority_flags(self) -> frozenset[str]:
        """The words of PriorityFlags in slurm.conf.

        Raises:
            InputError: scontrol does not answer.
        """
        text = output(["scontrol", "show", "config"], timeout_s=self.timeout_s, settings=_ENVIRONMENT)
        for line in text.decode("utf-8", "replace").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "PriorityFlags":
                return frozenset(value.strip().upper().replace(" ", "").split(","))
        return frozenset()

    def cancel(self, job: str) -> None:
        """Cancel a job.

        Raises:
            InputError: scancel does not answer.
        """
        output(["scancel", job], timeout_s=self.timeout_s, settings=_ENVIRONMENT)

    def submit(self, options: Sequence[str], script: Path, lock: int) -> str:
        """Submit a script; sbatch holds a lock while it runs, even if this process is killed.

        Returns:
            the id of the job.

        Raises:
            RefusedError: Slurm refuses the job.
            UnsureError: Slurm may or may not have accepted the job.
        """
        command = ["sbatch", "--parsable", *options, str(script)]
        try:
            done = subprocess.run(  # noqa: S603 - a list of arguments, no shell
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=self.timeout_s, pass_fds=(lock,),
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UnsureError(f"sbatch did not answer within {self.timeout_s:g} s") from None
        except OSError as error:
            raise InputError(f"sbatch cannot be run: {error.strerror}", hint="is Slurm on PATH?") from error
        message = done.stderr.decode("utf-8", "replace").strip()[:500]
        job = done.stdout.decode("utf-8", "replace").strip().split(";")[0]
        if done.returncode == 0 and is_job_id(job):
            return job
        if done.returncode > 0 and not any(word in message.lower() for word in _UNSURE):
            raise RefusedError(f"sbatch: exit {done.returncode}: {message or 'it message nothing'}")
        raise UnsureError(f"sbatch: exit {done.returncode}: {message or 'it printed no job id'}")
