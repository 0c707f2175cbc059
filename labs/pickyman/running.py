"""A job's processes on the compute node, and the bench that they run on."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from labs.pickyman import net, plan

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
Event = dict[str, Any]
VENV = Path(os.environ.get("GPUCTL_PICKYMAN_VENV", "/tmp/gpuctl-pickyman-venv"))
WORK = Path(os.environ.get("GPUCTL_PICKYMAN_WORK", "/tmp/gpuctl-pickyman"))
MBIT = 400
PEER_PORT = 7070
PACKAGES = ("jax==0.10.2", "jaxlib==0.10.2", "lightgbm==4.7.0", "numpy==2.4.6", "scipy==1.17.1")
# one compute thread; big buffers stay with the process, or page faults would make large batches dear
ENVIRONMENT = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "MALLOC_MMAP_THRESHOLD_": str(2**32),
    "MALLOC_TRIM_THRESHOLD_": str(2**33),
    "MALLOC_TOP_PAD_": str(2**28),
}


def missing() -> str | None:
    """Why the lab cannot run here, or None. ``python lab.py setup`` makes the environment of its own.

    CI runs it on demand only: else it would depend on what an earlier user of the machine left in /tmp.
    """
    if os.environ.get("CI") == "true" and os.environ.get("GPUCTL_LABS") != "1":
        return "in CI only with GPUCTL_LABS=1: make labs"
    if not (VENV / "bin" / "python").exists():
        return f"no {VENV} with JAX: python labs/pickyman/lab.py setup"
    if len(os.sched_getaffinity(0)) < 2:
        return "two workers need two processors"
    return net.missing()


class Running:
    """A job's processes, and what its first worker tells."""

    def __init__(self, command: list[list[str]]) -> None:
        self.began = time.monotonic()
        self._processes = [
            subprocess.Popen(
                line, env={**os.environ, **ENVIRONMENT, "PATH": net.PATH}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, text=True,
            )
            for line in command
        ]  # fmt: skip
        self.events: list[Event] = []
        self._incoming: queue.Queue[Event | None] = queue.Queue()
        # each pipe has a reader, or a worker would wait for room in it
        self._readers = [
            threading.Thread(target=self._listen, args=(process, process is self._processes[0]), daemon=True)
            for process in self._processes
        ]
        for reader in self._readers:
            reader.start()

    def wait_for(self, event: str, timeout_s: float = 120.0) -> Event:
        """The next event of this name.

        Raises:
            RuntimeError: the job ended before.
        """
        try:
            while (received := self._incoming.get(timeout=timeout_s)) is not None:
                self.events.append(received)
                if received["event"] == event:
                    return received
        except queue.Empty:
            raise RuntimeError(f"nothing of {event!r} in {timeout_s:.0f} s") from None
        raise RuntimeError(f"the job ended before it told of {event!r}")

    def stop(self) -> None:
        """Ask the first worker to finish its epoch."""
        self._processes[0].send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End all at once."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()

    def gone(self) -> float:
        """Wait until all processes have ended; return when that was, on the monotonic clock."""
        for process in self._processes:
            process.wait()  # with a timeout it would look only now and then
        at = time.monotonic()
        for reader in self._readers:
            reader.join()
        while not self._incoming.empty():
            received = self._incoming.get()
            self.events += [received] if received else []
        return at

    def _listen(self, process: subprocess.Popen[str], first: bool) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if first:
                self._incoming.put(json.loads(line))
        if first:
            self._incoming.put(None)


class Bench(NamedTuple):
    """A network that is up, and the job that is to run on it."""

    network: net.Net
    job: plan.Job
    folder: Path

    def start(self, *, resume: bool = False) -> Running:
        """Start the job's workers on the compute node."""
        job = self.job
        measured = {
            **job._asdict(), "resume": resume, "server": [net.SERVER, net.PORT], "data": f"/data/{job.family}",
            "checkpoint": "/checkpoints/model", "valid_batch": plan.VALID_BATCH[job.family], "peer_port": PEER_PORT,
        }  # fmt: skip
        file = self.folder / "job.json"
        file.write_text(json.dumps(measured), "utf-8")
        return Running([self.network.inside(*worker(file, rank)) for rank in range(job.gpus)])


def worker(file: Path, rank: int) -> list[str | Path]:
    """The command line of one worker, in the lab's own environment."""
    return [VENV / "bin" / "python", HERE / "job.py", file, str(rank)]


@contextlib.contextmanager
def bench(job: plan.Job) -> Iterator[Bench]:
    """Server, cable and, for a job of one worker, a neighbour on the other processor."""
    # in memory where that is possible: how fast a checkpoint is written is to depend on the network alone
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="gpuctl-pickyman-", dir=memory if memory.is_dir() else None))
    competitor = None
    try:
        with net.Net(WORK / "data", folder, MBIT) as network:
            if job.gpus == 1:
                file = folder / "neighbour.json"
                file.write_text(json.dumps(job._asdict()), "utf-8")
                competitor = Running([["nice", "-n", "5", *map(str, worker(file, -1))]])
                competitor.wait_for("busy")
            yield Bench(network, job, folder)
    finally:
        if competitor is not None:
            competitor.kill()
            competitor.gone()
        shutil.rmtree(folder, ignore_errors=True)
