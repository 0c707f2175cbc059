"""Checks of the machine on made-up kernels, disks and terminals."""

from __future__ import annotations

import io
import locale
import os
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpuctl.doctor import machine
from gpuctl.doctor.check import DoctorContext, Status, unwritable

GB = 10**9
NOWHERE = Path("/proc")
"""A directory that not even root can make a file in."""
needs_proc = pytest.mark.skipif(not NOWHERE.is_dir(), reason="needs a directory that root cannot write to")


def kernel(root: Path, files: dict[str, str]) -> DoctorContext:
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return DoctorContext(root=root)


def meminfo(free: float) -> dict[str, str]:
    return {"proc/meminfo": f"MemTotal:       99999999 kB\nMemAvailable: {int(free / 1024)} kB\n"}


@pytest.mark.parametrize(("free", "status"), [(8 * GB, Status.OK), (1.5 * GB, Status.WARN), (0.5 * GB, Status.FAIL)])
def test_memory(free: float, status: Status, tmp_path: Path) -> None:
    (found,) = machine.memory(kernel(tmp_path, meminfo(free)))
    assert found.status is status
    assert found.evidence.startswith({8: "8 GB free", 1.5: "1.50 GB free", 0.5: "500 MB free"}[free / GB])
    assert bool(found.fix) == (status is not Status.OK)


def test_the_control_group_and_those_above_it_limit_memory(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "0::/site/job\n",
        "sys/fs/cgroup/site/memory.max": str(4 * GB),
        "sys/fs/cgroup/site/memory.current": str(3 * GB),
        "sys/fs/cgroup/site/memory.stat": f"anon 5\ninactive_file {GB // 2}\n",
        "sys/fs/cgroup/site/job/memory.max": "max\n",
        "sys/fs/cgroup/site/job/memory.current": str(2 * GB),
    }
    kernel(tmp_path, meminfo(8 * GB) | group)
    assert machine.free_memory(tmp_path) == 1.5 * GB


def test_older_control_groups_limit_memory_too(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "9:cpuset:/\n4:memory:/job\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": str(2 * GB),
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": str(GB),
        "sys/fs/cgroup/cpuset/memory.limit_in_bytes": "1",
    }
    kernel(tmp_path, meminfo(8 * GB) | group)
    assert machine.free_memory(tmp_path) == GB


@pytest.mark.parametrize("text", ["", "MemAvailable:\n", "MemAvailable: much kB\n", "\x00\xff"])
def test_memory_that_the_kernel_does_not_tell_has_no_row(text: str, tmp_path: Path) -> None:
    assert list(machine.memory(kernel(tmp_path, {"proc/meminfo": text}))) == []


def test_a_group_that_points_outside_is_read_inside(tmp_path: Path) -> None:
    kernel(tmp_path, {"top/sys/cpu.max": "1 1", "top/proc/self/cgroup": "0::/../../..\n", "cpu.max": "1 100000"})
    assert machine.cpu_quota(tmp_path / "top") is None


@pytest.mark.parametrize(
    ("group", "quota"),
    [
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "5 0\n"}, None),
        ({}, None),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/a\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "50000\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            0.5,
        ),
    ],
)
def test_quota_of_processors(group: dict[str, str], quota: float | None, tmp_path: Path) -> None:
    kernel(tmp_path, group)
    assert machine.cpu_quota(tmp_path) == quota


@pytest.mark.parametrize(("quota", "status"), [("50000", Status.WARN), ("max", Status.OK)])
def test_processors(quota: str, status: Status, tmp_path: Path) -> None:
    group = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": f"{quota} 100000\n"}
    (found,) = machine.processors(kernel(tmp_path, group))
    assert found.status is status
    assert ("--jobs 1" in found.fix) == (status is Status.WARN)


# ---- disks


@pytest.mark.parametrize(
    ("free", "wanted", "status"),
    [(5 * GB, GB, Status.OK), (GB // 2, GB, Status.WARN), (5 * GB, 6 * GB, Status.WARN), (10**6, GB, Status.FAIL)],
)
def test_room(free: int, wanted: int, status: Status) -> None:
    found = machine.free_space("disk_store", Path("/data"), free, wanted, "for the store")
    assert found.status is status
    assert bool(found.fix) == (status is not Status.OK)


def test_as_much_room_as_the_store_takes_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "a.duckdb"
    with store.open("wb") as file:
        file.truncate(3 * GB)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2 * GB))
    found = {one.check: one for one in machine.disk(DoctorContext(db=store))}
    assert found["disk_store"].status is Status.WARN
    assert "3 GB needed" in found["disk_store"].evidence
    assert found["disk_temporary"].status is Status.OK


def test_a_store_in_a_directory_that_is_not_there_yet(tmp_path: Path) -> None:
    found = {one.check: one for one in machine.disk(DoctorContext(db=tmp_path / "no" / "such" / "a.duckdb"))}
    assert f"free in {tmp_path};" in found["disk_store"].evidence


@needs_proc
def test_a_temporary_directory_that_cannot_be_written_to_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(NOWHERE))
    (found,) = machine.disk(DoctorContext())
    assert found.status is Status.FAIL
    assert "TMPDIR" in found.fix


def test_looking_whether_a_directory_can_be_written_to_leaves_nothing(tmp_path: Path) -> None:
    assert unwritable(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    assert unwritable(tmp_path / "absent") == os.strerror(2)


def test_reports_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (here,) = machine.reports(DoctorContext())
    (absent,) = machine.reports(DoctorContext(reports=tmp_path / "a" / "b"))
    (relative,) = machine.reports(DoctorContext(reports=Path("c")))
    (tmp_path / "file").touch()
    (file,) = machine.reports(DoctorContext(reports=tmp_path / "file"))
    assert [one.status for one in (here, absent, relative, file)] == [Status.OK, Status.OK, Status.OK, Status.FAIL]
    assert here.evidence == f"{tmp_path} (where gpuctl runs) can be written to"
    assert absent.evidence == f"{tmp_path / 'a' / 'b'} does not exist yet, but can be created"
    assert relative.evidence == f"{tmp_path / 'c'} does not exist yet, but can be created"
    assert not (tmp_path / "a").exists()


@needs_proc
@pytest.mark.parametrize("place", [NOWHERE, NOWHERE / "reports"])
def test_a_reports_directory_that_cannot_be_written_to_fails(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = machine.reports(DoctorContext(reports=place))
    assert found.status is Status.FAIL
    assert "cannot be written to" in found.evidence
    # nobody asked for reports there
    monkeypatch.chdir(NOWHERE)
    (found,) = machine.reports(DoctorContext())
    assert found.status is Status.WARN


# ---- terminal


class Screen(io.StringIO):
    """Standard output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("width", "environ", "status", "evidence"),
    [
        (80, {"TERM": "xterm"}, Status.OK, "xterm, 80 columns, colours"),
        (80, {"TERM": "xterm", "NO_COLOR": "1"}, Status.OK, "xterm, 80 columns, no colours"),
        (80, {"TERM": "dumb"}, Status.OK, "dumb, 80 columns, no colours"),
        (59, {}, Status.WARN, "none, 59 columns, colours"),
    ],
)
def test_screen(width: int, environ: dict[str, str], status: Status, evidence: str) -> None:
    found = machine.screen(Screen(), width, DoctorContext(environ=environ))
    assert (found.status, found.evidence) == (status, evidence)


def test_a_pipe_is_no_terminal() -> None:
    found = machine.screen(io.StringIO(), 10, DoctorContext())
    assert found.status is Status.OK
    assert "TSV" in found.evidence


@pytest.mark.parametrize(
    ("encoding", "status"),
    [("utf-8", Status.OK), ("ascii", Status.WARN), ("latin-1", Status.WARN), ("no-such", Status.WARN)],
)
def test_letters(encoding: str, status: Status) -> None:
    assert machine.unicode_support(encoding).status is status


@pytest.mark.parametrize(
    ("environ", "status", "evidence"),
    [
        ({"LANG": "C", "LC_ALL": ""}, Status.OK, "LANG=C"),
        ({"LC_ALL": "xx_YY.none", "LANG": "C"}, Status.WARN, "LC_ALL=xx_YY.none is not installed on this machine"),
    ],
)
def test_locale_is_left_as_it_was(environ: dict[str, str], status: Status, evidence: str) -> None:
    before = locale.setlocale(locale.LC_CTYPE)
    found = machine.locale_setting(DoctorContext(environ=environ))
    assert (found.status, found.evidence) == (status, evidence)
    assert locale.setlocale(locale.LC_CTYPE) == before
