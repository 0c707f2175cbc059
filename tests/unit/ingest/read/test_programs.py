"""Programs that hang, print without end, or are none: all of them end, and so does what they have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.read import programs


def script(folder: Path, text: str, *, head: str = "#!/bin/sh\n") -> str:
    path = folder / "asked"
    path.write_text(head + text)
    path.chmod(0o755)
    return str(path)


def run(command: str, *, timeout_s: float = 20.0, most: int = 1 << 20) -> bytes:
    return programs.output([command], timeout_s=timeout_s, settings={"EXTRA": "1"}, most=most)


def gone(process: int) -> bool:
    """Whether it has ended, within a second; an orphan's remains are for init to clear away."""
    for _ in range(100):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def test_output_is_complete_and_errors_do_not_delay_it(tmp_path: Path) -> None:
    loud = script(tmp_path, 'head -c 300000 /dev/zero >&2; head -c 500000 /dev/zero; echo "$EXTRA"\n')
    assert run(loud) == bytes(500_000) + b"1\n"


@pytest.mark.parametrize(
    "hang",
    [
        "sleep 60 & echo $! >pid; wait",
        "sleep 60 & echo $! >pid; exec >&- 2>&-; wait",
        "trap '' TERM INT HUP; sleep 60 & echo $! >pid; while :; do sleep 1; done",
        # it has ended itself, and what it has left holds its output open
        "sleep 60 & echo $! >pid",
        "(echo $BASHPID >pid; while :; do echo x; sleep 0.1; done) & wait",
    ],
)
def test_a_program_that_hangs_is_ended_with_all_that_it_has_started(
    tmp_path: Path, hang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    began = time.monotonic()
    with pytest.raises(InputError, match=r"asked did not answer within 0\.5 s \(the time\) and was stopped") as raised:
        list(
            programs.stream([script(tmp_path, hang, head="#!/bin/bash\n")], timeout_s=0.5, settings={}, what="the time")
        )
    assert "--timeout" in str(raised.value.hint)
    assert time.monotonic() - began < 5
    assert gone(int((tmp_path / "pid").read_text()))


def test_output_without_end_is_stopped_at_the_limit(tmp_path: Path) -> None:
    endless = script(tmp_path, "exec cat /dev/zero\n")
    with pytest.raises(InputError, match="asked printed more than 1 MiB and was stopped"):
        run(endless)


@pytest.mark.parametrize(
    ("text", "head"), [("echo no interpreter\n", ""), ("\x7fELF", ""), ("x", "#!/nowhere/sh\n")], ids=str
)
def test_a_missing_program_is_reported(tmp_path: Path, text: str, head: str) -> None:
    with pytest.raises(InputError, match="cannot be run: ") as raised:
        run(script(tmp_path, text, head=head))
    assert "#!" in str(raised.value.hint)


def test_a_program_that_fails_is_reported_with_its_first_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^asked: exit 3: first$"):
        run(script(tmp_path, "echo half; echo first >&2; echo second >&2; exit 3\n"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_that_ends_gpuctl_ends_the_program_too(tmp_path: Path, number: signal.Signals, root: Path) -> None:
    waits = script(tmp_path, f"sleep 60 & echo $! >{tmp_path}/child; mv {tmp_path}/child {tmp_path}/pid; wait\n")
    code = (
        "from gpuctl.ingest.read import programs\n"
        f"programs.output([{waits!r}], timeout_s=60, settings={{}})\n"
    )  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(root)}, stderr=subprocess.DEVNULL
    )
    end = time.monotonic() + 20
    while not (tmp_path / "pid").exists() and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(10) == -number
    assert gone(int((tmp_path / "pid").read_text()))
