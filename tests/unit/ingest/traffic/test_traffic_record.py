"""Recording, against a made-up /proc."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.traffic import record as recorder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEADING = "Inter-| Receive | Transmit\n face |bytes\n"
STAT = "42 (a (b) c) {} 1 1 1 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 {} 1 1\n"


def dev(**received: int) -> str:
    return HEADING + "".join(f"{name}: {count} {'0 ' * 15}\n" for name, count in received.items())


def nfs(*reads: int) -> str:
    mount = "device nas:/{0} mounted on /{0} with fstype nfs4 statvers=1.1\n\tbytes:\t{1} 0 0 0 {1} 0 0 0\n"
    return "".join(mount.format(at, size) for at, size in enumerate(reads))


class Proc:
    """A /proc with one process, 42; each call of sleep takes the next step."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = folder
        self.steps: list[Callable[[], None]] = []
        (folder / "42" / "net").mkdir(parents=True)
        (folder / "net").mkdir()
        self.stat("S")
        self.mountstats("")
        self.dev(lo=1)
        monkeypatch.setattr(recorder.time, "sleep", lambda _: self.steps.pop(0)())

    def stat(self, state: str, born: int = 777) -> None:
        (self.path / "42" / "stat").write_text(STAT.format(state, born))

    def mountstats(self, text: str) -> None:
        (self.path / "42" / "mountstats").write_text(text)

    def dev(self, **received: int) -> None:
        (self.path / "42" / "net" / "dev").write_text(dev(**received))
        (self.path / "net" / "dev").write_text(dev(**received))

    def recorded(self, counters: recorder.Counters, duration_s: float | None = None, job: str = "j") -> list[str]:
        out = io.StringIO()
        with counters:
            recorder.record(counters, job, out, interval_s=100.0, duration_s=duration_s)
        return [line.rpartition(",")[2] for line in out.getvalue().splitlines()]


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proc:
    return Proc(tmp_path, monkeypatch)


def test_a_process_with_nfs_mounts_until_it_ends(proc: Proc) -> None:
    proc.mountstats(nfs(100, 5))
    counters = recorder.of_process(42, proc.path)
    assert "NFS mounts of process 42" in counters.what

    def end() -> None:
        proc.mountstats(nfs(160, 6, 40))
        proc.stat("Z")

    # the second mount is made anew, the third one is new; at the end what came last is still counted
    proc.steps = [lambda: proc.mountstats(nfs(150, 2)), end]
    assert proc.recorded(counters) == ["0", "52", "54"]


def test_a_process_without_nfs_counts_its_network_namespace(proc: Proc) -> None:
    proc.mountstats("device x mounted on / with fstype ext4\n")
    proc.dev(lo=1000, eth0=10, ib0=1)
    counters = recorder.of_process(42, proc.path)
    assert "network namespace of process 42" in counters.what
    # another process of the same number is not the one that was asked for
    proc.steps = [lambda: proc.dev(lo=9000, eth0=15, ib0=3), lambda: proc.stat("S", born=778)]
    assert proc.recorded(counters) == ["0", "7", "0"]


def test_an_interface_for_a_time_and_when_it_goes_away(proc: Proc) -> None:
    proc.dev(lo=5, eth0=10)
    proc.steps = [lambda: proc.dev(lo=7, eth0=99), lambda: proc.dev(lo=1, eth0=99)]
    assert proc.recorded(recorder.of_interface("lo", proc.path), duration_s=200.0) == ["0", "2", "1"]
    proc.steps = [lambda: proc.dev(lo=7)]
    with pytest.raises(InputError, match=r"interface eth0 receives: they no longer exist; 1 samples"):
        proc.recorded(recorder.of_interface("eth0", proc.path))


def test_names_are_quoted_where_csv_needs_it(proc: Proc) -> None:
    out = io.StringIO()
    with recorder.of_interface("lo", proc.path) as counters:
        recorder.record(counters, 'a,"b"', out, interval_s=100.0, duration_s=1.0)
    assert out.getvalue().startswith('"a,""b""",')
    assert out.getvalue().endswith(",0\n")


def test_missing_counters_are_reported(proc: Proc) -> None:
    with pytest.raises(UsageError, match=r"--pid 43: no such process"):
        recorder.of_process(43, proc.path)
    proc.stat("Z")
    with pytest.raises(UsageError, match=r"--pid 42: no such process, or it has ended"):
        recorder.of_process(42, proc.path)
    with pytest.raises(UsageError, match=r"--iface eth7: no such interface here; known: lo$"):
        recorder.of_interface("eth7", proc.path)
    with pytest.raises(UsageError, match=r"reads counters of Linux"):
        recorder.of_interface("lo", proc.path / "none")


def test_counters_that_may_not_be_read_are_reported(proc: Proc) -> None:
    (proc.path / "42" / "mountstats").unlink()
    (proc.path / "42" / "mountstats").mkdir()
    with pytest.raises(InputError, match=r"mountstats: cannot be read: Is a directory"):
        recorder.of_process(42, proc.path)
