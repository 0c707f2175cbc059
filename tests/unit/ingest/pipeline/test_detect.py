from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.pipeline.detect import HEAD, Finding, detect, survey
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.ingest.read.files import NotRead, Opener
from tests.fake_format import FAKE, lines, variant

if TYPE_CHECKING:
    from pathlib import Path

HEADS = [
    b"time,machineId,gpu0_util,gpu1_util\n2017-10-03 00:08:00 PDT,m29,60.8,1.0,\n",
    b'[{"status": "Pass", "vc": "ee9e8c", "jobid": "application_1_2", "attempts": [], "submitted_time": "2017"}]',
    b"machineId, number of GPUs, single GPU mem\nm31,8, 24GB\n",
    b"timestamp,duration,num_gpus,cluster\n",
]


def look(*paths: Path, sizes: set[int] | None = None) -> list[Finding | NotRead]:
    opener = Opener()
    try:
        return list(survey(paths, [FAKE], opener, sizes=sizes or set()))
    finally:
        opener.close()


def why_not(data: bytes, path: Path) -> str:
    path.write_bytes(data)
    (found,) = look(path)
    assert isinstance(found, NotRead)
    return found.why


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (gzip.compress(b"", mtime=0), "empty"),
        (b"hello\n", "no known format"),
        (b"\x7fELF\0\0", "binary"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 51281925\n" % (b"0f" * 32),
            "a pointer of Git LFS: the file itself (51.3 MB) is not here; run `git lfs pull` in the repository",
        ),
        (
            b"\n<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n",
            "a page of HTML, such as a server's error message; download the file again",
        ),
        (b"\x00\x05\x16\x07\0\2\0\0Mac OS X", "a macOS AppleDouble file, which is not needed"),
        ("#fake\n".encode("utf-16"), "UTF-16 text; make it UTF-8 first: iconv -f UTF-16 -t UTF-8"),
        (gzip.compress(b"#fake\n" * 1000)[:11], "truncated gzip stream"),
        (gzip.compress(bytes(range(65, 91)) * 9)[:-9], "no known format (truncated gzip stream)"),
    ],
    ids=["empty", "empty inside", "text", "binary", "lfs", "html", "apple", "utf-16", "cut to nothing", "cut"],
)
def test_states_why_a_file_is_not_recognised(tmp_path: Path, data: bytes, why: str) -> None:
    assert why_not(data, tmp_path / "x") == why


def test_an_archive_in_an_archive_is_not_opened_and_that_is_reported(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo("log")
        info.size = len(lines(3))
        tar.addfile(info, io.BytesIO(lines(3)))
    inner = buffer.getvalue()
    with tarfile.open(tmp_path / "outer.tar", "w") as tar:
        info = tarfile.TarInfo("inner.tar.gz")
        info.size = len(gzip.compress(inner))
        tar.addfile(info, io.BytesIO(gzip.compress(inner)))
    (found,) = look(tmp_path)
    assert isinstance(found, NotRead)
    assert found.why == "an archive inside an archive: unpack it and name the directory"


def test_recognises_by_content_and_says_by_what(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(lines(3)))
    (found,) = look(tmp_path)
    assert isinstance(found, Finding)
    assert (found.format, found.why, found.sha256) == (FAKE, "first line #fake", None)


def test_two_claims_are_a_fault_that_names_both(tmp_path: Path) -> None:
    twin = variant(name="twin")
    assert detect("x", lines(1), [FAKE, twin]) == (
        None,
        "ambiguous: could be fake or twin; --log-format NAME selects one",
        True,
    )
    assert detect("x", lines(1), [FAKE, twin], chosen=twin)[0] is twin


def test_formats_see_the_plain_name_and_no_more_than_the_head(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []

    def sniff(name: str, head: bytes) -> str | None:
        seen.append((name, len(head)))
        return None

    (tmp_path / "big.gz").write_bytes(gzip.compress(b"x\n" * HEAD))
    opener = Opener()
    list(survey([tmp_path], [variant(sniff=sniff)], opener, sizes=set()))
    assert seen == [("big", HEAD)]


def test_hashes_only_what_may_be_known_already(tmp_path: Path) -> None:
    for name, count in (("a", 5), ("b", 6), ("c", 6)):
        (tmp_path / name).write_bytes(lines(count))
    hashed = [f.sha256 is not None for f in look(tmp_path, sizes={len(lines(5))}) if isinstance(f, Finding)]
    assert hashed == [True, False, True]


def test_every_format_is_registered_once_in_loading_order() -> None:
    known = all_formats()
    assert known
    assert all(isinstance(f, Format) for f in known)
    assert list(known) == sorted(known, key=lambda f: (f.order, f.name))
    assert len({f.name for f in known}) == len(known)


def test_listing_formats_loads_nothing_heavy() -> None:
    code = (
        "import sys; from gpuctl.ingest.pipeline.registry import all_formats; all_formats();"
        "print([m for m in ('numpy', 'polars', 'duckdb', 'pyarrow', 'numba', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_env())
    assert done.stdout.strip() == "[]"


@settings(max_examples=150)
@given(st.sampled_from(["cluster_job_log", "cluster_gpu_util", "x.csv", ""]), st.binary(max_size=300), st.data())
def test_no_sniffer_ever_raises_or_claims_what_another_claims(name: str, noise: bytes, data: st.DataObject) -> None:
    head = data.draw(st.sampled_from([b"", *HEADS]))
    at = data.draw(st.integers(0, len(head)))
    _, why, ambiguous = detect(name, head[:at] + noise + head[at:], all_formats())
    assert why
    assert not ambiguous


def _env() -> dict[str, str]:
    from tests.conftest import ROOT

    return {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
