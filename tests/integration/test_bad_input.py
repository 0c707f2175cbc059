"""Input that is none: a clear message and exit code 3, or counted rejects, and never a traceback."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.read.codecs import Limits

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

GPU = b"time,machineId,gpu0_util,gpu1_util\n2017-10-09 10:00:00 PDT,m1,60.8,NA,\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


def _ingest(gpuctl: Run, logs: Path, *, code: int) -> subprocess.CompletedProcess[str]:
    done = gpuctl("ingest", logs, "--db", logs.parent / "db", check=False)
    assert "Traceback" not in done.stderr, done.stderr
    assert "internal error" not in done.stderr, done.stderr
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("cluster_job_log", b"", "empty"),
        ("cluster_job_log", b"\0\1\2" * 1000, "binary"),
        ("cluster_gpu_util", GPU.decode().encode("utf-16"), "UTF-16"),
        ("cluster_gpu_util.gz", gzip.compress(GPU, mtime=0)[:12], "no known format (truncated gzip stream)"),
        ("readme.md", b"# hello\n", "no known format"),
        ("a.zip", b"PK\3\4rubbish", "damaged archive"),
    ],
    ids=["empty", "binary", "utf-16", "cut", "text", "zip"],
)
def test_a_file_that_is_no_log_is_named_with_the_reason(
    gpuctl: Run, logs: Path, name: str, data: bytes, why: str
) -> None:
    (logs / name).write_bytes(data)
    done = _ingest(gpuctl, logs, code=3)
    assert f"{logs / name}: {why}" in done.stderr
    assert "hint: what gpuctl reads: gpuctl formats" in done.stderr
    assert not (logs.parent / "db").exists()


def test_an_empty_directory(gpuctl: Run, logs: Path) -> None:
    assert "no file here" in _ingest(gpuctl, logs, code=3).stderr


def test_a_path_that_is_not_there(gpuctl: Run, logs: Path) -> None:
    assert "no such file or directory" in _ingest(gpuctl, logs / "nope", code=3).stderr


def test_a_line_of_a_million_columns(gpuctl: Run, logs: Path) -> None:
    (logs / "cluster_gpu_util").write_bytes(
        GPU + b"2017-10-09 10:01:00 PDT,m1" + b",1" * 1_000_000 + b"\n" + GPU.splitlines()[1]
    )
    done = _ingest(gpuctl, logs, code=0)
    assert done.stdout.splitlines()[1].split("\t")[3:6] == ["3", "2", "1"]


def test_json_nested_a_hundred_thousand_deep(gpuctl: Run, logs: Path) -> None:
    job = {
        "status": "Pass",
        "vc": "a",
        "jobid": "application_1_1",
        "attempts": [],
        "submitted_time": "2017-10-09 10:00:00",
    }
    deep = '{"jobid": "application_1_2", "attempts": ' + "[" * 100_000 + "]" * 100_000 + "}"
    whole = json.dumps({**job, "user": "u"})
    (logs / "cluster_job_log").write_text(f"[{whole},\n{deep},\n{whole.replace('1_1', '1_3')}]")
    done = _ingest(gpuctl, logs, code=0)
    rows, loaded, rejected = map(int, done.stdout.splitlines()[1].split("\t")[3:6])
    assert rows == loaded + rejected
    assert rejected >= 1
    assert loaded >= 1


def test_a_truncated_log_keeps_its_rows(gpuctl: Run, logs: Path, sample_data: Path) -> None:
    data = (sample_data / "philly" / "cluster_cpu_util.gz").read_bytes()
    (logs / "cluster_cpu_util.gz").write_bytes(data[: len(data) // 2])
    done = _ingest(gpuctl, logs, code=0)
    assert "truncated gzip stream" in done.stderr
    rows, loaded, rejected = map(int, done.stdout.splitlines()[1].split("\t")[3:6])
    assert (rows, rejected) == (loaded + 1, 1)
    assert loaded > 10_000


@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_a_truncated_job_log_counts_one_reject(gpuctl: Run, logs: Path, sample_data: Path, cut: float) -> None:
    data = gzip.compress((sample_data / "philly" / "cluster_job_log").read_bytes())
    (logs / "cluster_job_log.gz").write_bytes(data[: int(len(data) * cut)])
    done = _ingest(gpuctl, logs, code=0)
    rows, loaded, rejected = map(int, done.stdout.splitlines()[1].split("\t")[3:6])
    assert (rows, rejected) == (loaded + 1, 1)
    assert loaded > 100


def test_an_evil_archive_gives_what_is_good_in_it(gpuctl: Run, logs: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, kind, data in (
            ("/abs", tarfile.REGTYPE, GPU),
            ("../../up", tarfile.REGTYPE, GPU),
            ("sym", tarfile.SYMTYPE, b""),
            ("hard", tarfile.LNKTYPE, b""),
            ("\x1b[31mevil\x1b]0;title\x07[/x]", tarfile.REGTYPE, b"#"),
            ("d/cluster_gpu_util", tarfile.REGTYPE, GPU),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(data), "/etc/passwd" if not data else ""
            tar.addfile(info, io.BytesIO(data))
    (logs / "a.tgz").write_bytes(buffer.getvalue())
    done = _ingest(gpuctl, logs, code=0)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()[1:]] == [f"{logs}/a.tgz!d/cluster_gpu_util"]
    for name in ("/abs", "../../up", "sym", "hard"):
        assert f"skipped: {logs}/a.tgz!{name}: " in done.stderr
    assert "\\x1b[31mevil\\x1b]0;title\\x07[/x]: no known format" in done.stderr
    assert "\x1b" not in done.stderr
    assert sorted(p.name for p in logs.parent.rglob("*")) == ["a.tgz", "db", "logs"]


def test_a_bomb_is_refused_and_the_rest_is_read(logs: Path) -> None:
    (logs / "bomb.gz").write_bytes(gzip.compress(GPU + bytes(8 << 20)))
    (logs / "cluster_gpu_util").write_bytes(GPU)
    report = ingest([logs], logs.parent / "db", limits=Limits(ratio=100, floor=4 << 20))
    assert [(s.path, s.status) for s in report.sources] == [
        (f"{logs}/bomb.gz", "failed"),
        (f"{logs}/cluster_gpu_util", "loaded"),
    ]
    assert "decompress to more than" in report.sources[0].message
    assert report.failed


def test_a_bomb_alone_is_an_error(logs: Path) -> None:
    (logs / "bomb.gz").write_bytes(gzip.compress(bytes(8 << 20)))
    with pytest.raises(InputError, match=r"bomb\.gz: \d+ bytes decompress to more than \d+"):
        ingest([logs], logs.parent / "db", limits=Limits(ratio=100, floor=1 << 18))
    assert not (logs.parent / "db").exists()
