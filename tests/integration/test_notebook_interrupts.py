"""Interrupting a cell in a real kernel: the call stops, leaves nothing behind, and the next cell works."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from jupyter_client.manager import KernelManager

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST_S = 20.0
SETUP = '''
import json, os, random, signal, sys, threading
import gpuctl, polars

rng = random.Random(1)
SIZE = 200_000
JOBS = polars.DataFrame({
    "job_id": [f"j{n}" for n in range(SIZE)],
    "submit_time": sorted(rng.uniform(0, 2 * SIZE) for _ in range(SIZE)),
    "duration": [rng.expovariate(1 / 500) + 1 for _ in range(SIZE)],
    "num_gpus": rng.choices([1, 2, 4, 8], k=SIZE),
})

def slurm(path, lines):
    """A log of accounting, as sacct prints it."""
    with open(path, "w") as file:
        file.write("JobIDRaw|User|Partition|State|Submit|Start|End|AllocTRES|NodeList\\n")
        for n in range(lines):
            day, hour = n // 2400 % 28 + 1, n // 100 % 24
            at = f"2024-02-{day:02}T{hour:02}:{n % 60:02}"
            file.write(f"{n}|u{n % 50}|gpu|COMPLETED|{at}:00|{at}:20|{at}:59|gres/gpu=8|n{n % 90}\\n")

slurm("sacct.txt", 60_000)
slurm("few.txt", 20)
gpuctl.ingest("few.txt", "small.duckdb")

class Slow(gpuctl.plugins.RankPolicy):
    name = "slow"

    def rank(self, jobs):
        print("ranked", flush=True)
        return jobs.gpus

def children():
    own = [line for task in os.listdir("/proc/self/task") for line in
           open(f"/proc/self/task/{task}/children").read().split()]
    commands = [open(f"/proc/{number}/cmdline").read() for number in own]
    # Python's own, one for the life of the kernel
    return [each for each in commands if "resource_tracker" not in each]

def state():
    return json.dumps({
        "children": children(), "handler": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "blocked": signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []),
    })
'''
NEXT = """
few = JOBS.head(3)
gpuctl.ingest("few.txt", "big.duckdb")
with gpuctl.open(few) as trace:
    counted = trace.sql("SELECT count(*) AS n FROM jobs")["n"][0]
print([counted, gpuctl.replay(few, "1x8").table("replay_jobs").height])
"""
IMPORTING = "a sweep whose libraries are being imported"
CALLS = {
    IMPORTING: ("gpuctl.sweep(JOBS, '40x8', ['fifo', 'srtf'], seeds=[1, 2], processes=2)", 0.6),
    "replay": ("gpuctl.replay(JOBS, '40x8', ['srtf'])", 2.0),
    "replay in processes": ("gpuctl.replay(JOBS, '40x8', ['fifo', 'srtf'], processes=2)", 3.0),
    "sweep": ("gpuctl.sweep(JOBS, '40x8', ['fifo', 'srtf'], seeds=[1, 2], processes=2)", 3.0),
    "replay of a class": ("gpuctl.replay(JOBS.head(3000), '40x8', [Slow])", 0.5),
    "ingest": ("gpuctl.ingest('sacct.txt', 'big.duckdb')", 1.0),
    "analyze": ("gpuctl.analyze('sacct.txt', 'all')", 3.0),
}
"""Calls that take longer than the time after which they are interrupted."""


class Kernel:
    """A kernel that runs cells."""

    def __init__(self, folder: Path) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=str(folder))
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str, interrupt_after_s: float | None = None) -> tuple[dict[str, Any], str, float]:
        """Run a cell; return the reply, what it printed, and the seconds from the interruption to its end."""
        sent = self.client.execute(f"print('begun', flush=True)\n{code}", store_history=False)
        printed, interrupted = "", 0.0
        while True:
            message = self.client.get_iopub_msg(timeout=100)
            if message["parent_header"].get("msg_id") != sent:
                continue
            if message["msg_type"] == "stream":
                printed += message["content"]["text"]
                if interrupt_after_s is not None and not interrupted:
                    time.sleep(interrupt_after_s)
                    self.manager.interrupt_kernel()
                    interrupted = time.monotonic()
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        ended = time.monotonic()
        while (reply := self.client.get_shell_msg(timeout=10))["parent_header"].get("msg_id") != sent:
            pass
        return reply["content"], printed.removeprefix("begun\n"), ended - interrupted if interrupted else 0.0

    def end(self) -> None:
        """Stop it."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One kernel for all tests: each of them also shows that the one before left it sound."""
    folder = tmp_path_factory.mktemp("notebook")
    made = Kernel(folder)
    try:
        reply, _, _ = made.run(SETUP)
        assert reply["status"] == "ok", reply
        yield made
    finally:
        made.end()


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupted_call_leaves_a_sound_kernel(name: str, kernel: Kernel) -> None:
    code, after_s = CALLS[name]
    for sooner in (1, 3, 10):
        reply, printed, seconds = kernel.run(code, after_s / sooner)
        if reply["status"] == "error":
            break
    assert reply["status"] == "error", "it ended before it was interrupted"
    assert reply["ename"] in {"KeyboardInterrupt", "ReplayInterrupted", "SweepInterrupted", "IngestInterrupted"}
    assert printed.replace("ranked", "").strip() == ""
    # a second, except on a busy machine, or in an import, which is never left half done
    assert seconds < LONGEST_S
    for _ in range(50):
        reply, printed, _ = kernel.run("print(state())")
        if not json.loads(printed)["children"]:
            break
        # a process that has been told to end takes its time on a busy machine
        time.sleep(0.1)
    assert json.loads(printed) == {"children": [], "handler": True, "blocked": False}
    reply, printed, _ = kernel.run(NEXT)
    assert (reply["status"], printed) == ("ok", "[3, 3]\n"), reply
