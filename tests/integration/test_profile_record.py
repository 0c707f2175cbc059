"""``gpuctl profile record`` on real counters of Linux: downloads of a known size in network namespaces of their own."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Run = Callable[..., subprocess.CompletedProcess[str]]

AS_GPUCTL = "import sys; sys.argv[0] = 'gpuctl'; from gpuctl.cli.main import main; main()"
SIZE = 8_000_000
FOR_S = 12
HEADERS = 0.10
"""Most that headers of Ethernet, IP and TCP add to a download: 66 bytes a packet of 1448, and the acknowledgements."""
SERVE = """
import http.server, sys
class Zeros(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        size = int(self.path[1:])
        self.send_response(200); self.send_header("Content-Length", str(size)); self.end_headers()
        self.wfile.write(bytes(size))
    def log_message(self, *_): pass
server = http.server.HTTPServer((sys.argv[1], 8123), Zeros)
print("ready", flush=True)
server.serve_forever()
"""
FETCH = """
import sys, urllib.request
for _ in sys.stdin:
    assert len(urllib.request.urlopen(f"http://{sys.argv[1]}:8123/{sys.argv[2]}").read()) == int(sys.argv[2])
    print("fetched", flush=True)
"""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads counters of Linux")


def fetch(fetching: subprocess.Popen[str]) -> None:
    """Let the process that runs FETCH download once more."""
    assert fetching.stdin is not None
    assert fetching.stdout is not None
    fetching.stdin.write("go\n")
    fetching.stdin.flush()
    assert fetching.stdout.readline() == "fetched\n"


def recorded(path: Path) -> list[tuple[str, float, int]]:
    """Job, time and bytes of every line; all lines are whole."""
    text = path.read_text()
    assert text.endswith("\n")
    header, *rows = list(csv.reader(text.splitlines()))
    assert header == ["job_id", "t", "bytes"]
    return [(job, float(at), int(size)) for job, at, size in rows]


def started(*command: str, prefix: tuple[str, ...] = (), root: Path) -> subprocess.Popen[str]:
    """A process of ours, as gpuctl where the command is one of its."""
    return subprocess.Popen(
        [*prefix, sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def more_lines_in(path: Path, count: int) -> None:
    """Wait until a recording has so many more lines."""
    known = path.read_text().count("\n") if path.exists() else 0
    for _ in range(1200):
        if path.exists() and path.read_text().count("\n") >= known + count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} has no {count} more lines after 60 s")


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Two network namespaces joined by a cable, 10.77.x.1 and .2; skipped where they cannot be made."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and ip to make network namespaces")
    one, two = (f"gpuctl-{os.getpid()}-{name}" for name in "ab")
    steps = [
        f"netns add {one}",
        f"netns add {two}",
        f"link add ga netns {one} type veth peer name gb netns {two}",
        f"-n {one} addr add 10.77.0.1/24 dev ga",
        f"-n {one} link set ga up",
        f"-n {two} addr add 10.77.0.2/24 dev gb",
        f"-n {two} link set gb up",
        f"-n {two} link set lo up",
    ]
    try:
        for step in steps:
            done = subprocess.run(["ip", *step.split()], check=False, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"ip {step}: {done.stderr.strip()}")
        yield one, two
    finally:
        for name in (one, two):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.fixture
def server(namespaces: tuple[str, str], root: Path) -> Iterator[str]:
    """The address of a server of zeros in the first namespace."""
    serving = started("-c", SERVE, "10.77.0.1", prefix=("ip", "netns", "exec", namespaces[0]), root=root)
    assert serving.stdout is not None
    assert serving.stdout.readline() == "ready\n"
    yield "10.77.0.1"
    serving.kill()
    serving.communicate()


def test_downloads_of_a_process_equal_the_recording(
    namespaces: tuple[str, str], server: str, gpuctl: Run, root: Path, tmp_path: Path
) -> None:
    fetching = started("-c", FETCH, server, str(SIZE), prefix=("ip", "netns", "exec", namespaces[1]), root=root)
    out = tmp_path / "train.csv"
    recording = started(
        *("-c", AS_GPUCTL, "profile", "record", "--pid", str(fetching.pid)),
        *("--interval", "0.2", "--job", "train-1", "--output", str(out)),
        root=root,
    )
    more_lines_in(out, 3)
    fetch(fetching)
    # the second one from here on begins after it
    more_lines_in(out, 2)
    assert SIZE < sum(size for _, _, size in recorded(out)) < SIZE * (1 + HEADERS)
    fetch(fetching)
    assert fetching.communicate(timeout=60)[0] == ""
    _, said = recording.communicate(timeout=60)
    assert recording.returncode == ExitCode.OK, said
    assert f"the network namespace of process {fetching.pid} receives" in said
    rows = recorded(out)
    total = sum(size for _, _, size in rows)
    assert f"{len(rows)} samples, {total} bytes in {out}" in said
    assert 2 * SIZE < total < 2 * SIZE * (1 + HEADERS)
    assert {job for job, _, _ in rows} == {"train-1"}
    assert all(after[1] > before[1] for before, after in pairwise(rows))
    done = gpuctl("ingest", out, "--db", tmp_path / "x.duckdb", "--json")
    assert f'"rows_loaded": {len(rows)}' in done.stdout


def test_an_interface_for_a_while_then_ctrl_c_and_kill(
    namespaces: tuple[str, str], server: str, root: Path, tmp_path: Path
) -> None:
    inside = ("ip", "netns", "exec", namespaces[1])

    def record(name: str, *more: str) -> subprocess.Popen[str]:
        command = ("profile", "record", "--iface", "gb", "--interval", "0.1", "--output", str(tmp_path / name), *more)
        return started("-c", AS_GPUCTL, *command, prefix=inside, root=root)

    fetching = started("-c", FETCH, server, str(SIZE), prefix=inside, root=root)
    runs = {"int.csv": record("int.csv"), "kill.csv": record("kill.csv")}
    for name in runs:
        more_lines_in(tmp_path / name, 3)
    # the last to start: its time is for the downloads alone, which take one second, and many on a busy machine
    runs["for.csv"] = record("for.csv", "--for", str(FOR_S))
    more_lines_in(tmp_path / "for.csv", 3)
    fetch(fetching)
    fetch(fetching)
    fetching.communicate(timeout=60)
    for name in ("int.csv", "kill.csv"):
        # the second one from here on begins after the downloads
        more_lines_in(tmp_path / name, 2)
    runs["int.csv"].send_signal(signal.SIGINT)
    runs["kill.csv"].kill()
    said = {name: run.communicate(timeout=60)[1] for name, run in runs.items()}
    assert {name: run.returncode for name, run in runs.items()} == {
        "for.csv": ExitCode.OK, "int.csv": ExitCode.INTERRUPTED, "kill.csv": -signal.SIGKILL,
    }  # fmt: skip
    for name in runs:
        rows = recorded(tmp_path / name)
        assert 2 * SIZE < sum(size for _, _, size in rows) < 2 * SIZE * (1 + HEADERS), said[name]
        assert {job for job, _, _ in rows} == {"gb"}
    times = [at for _, at, _ in recorded(tmp_path / "for.csv")]
    late = max(after - before for before, after in pairwise(times))  # a sample may be, on a busy machine
    assert FOR_S - 0.5 - late < times[-1] - times[0] < FOR_S + late
    assert len(times) <= 10 * FOR_S + 1
    assert f"bytes in {tmp_path / 'int.csv'}\ngpuctl: interrupted" in said["int.csv"]


def test_mistakes_are_reported_before_anything_is_written(gpuctl: Run, tmp_path: Path) -> None:
    there = tmp_path / "there.csv"
    there.write_text("kept\n")

    def said(*options: str) -> str:
        done = gpuctl("profile", "record", *options, check=False)
        assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
        return done.stderr

    assert "give one of --pid and --iface" in said()
    assert "give one of --pid and --iface" in said("--pid", "1", "--iface", "lo")
    assert "no such process" in said("--pid", "4194304")
    assert "no such interface here; known: " in said("--iface", "nope0")
    assert "at least 0.1 seconds" in said("--iface", "lo", "--interval", "0.01")
    assert "more than 0 seconds" in said("--iface", "lo", "--for", "0")
    assert f"{there} already exists" in said("--iface", "lo", "--for", "1", "--output", str(there))
    assert there.read_text() == "kept\n"


def test_without_output_the_recording_goes_to_stdout(gpuctl: Run) -> None:
    # a sample that would be a whole interval late is left out, so the interval is long
    done = gpuctl("--quiet", "profile", "record", "--iface", "lo", "--for", "2", "--interval", "1")
    header, *rows = done.stdout.splitlines()
    assert (header, len(rows), done.stderr) == ("job_id,t,bytes", 3, "")
