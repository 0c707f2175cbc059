"""Whatever is done to a file, no row of it goes missing: rows_in = rows_loaded + rows_rejected."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.example_counts import examples
from tests.example_files import PHILLY
from tests.fake_format import FAKE, lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.ingest.pipeline.report import IngestReport

VALID = {name: data for name, data in PHILLY.items() if name != "cluster_cpu_util"}
PACK: tuple[Callable[[bytes], bytes], ...] = (
    bytes,
    gzip.compress,
    zstandard.ZstdCompressor().compress,
    bz2.compress,
    lzma.compress,
)
SETTINGS = settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])


@st.composite
def spoiled(draw: st.DrawFn, data: bytes) -> bytes:
    """`data` with a few bytes changed, cut out or put in, and perhaps cut off."""
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 30))
        with_what = draw(
            st.one_of(st.binary(max_size=30), st.sampled_from([b"\n", b'"', b"{", b"[", b",", b"\0", b"\r\n"]))
        )
        data = data[:at] + with_what + data[at + length :]
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


def _ingest(name: str, data: bytes, *, fake: bool = False) -> tuple[IngestReport | None, list[tuple[int, ...]]]:
    """Ingest one file; what was reported (None: refused), and the ledger beside the rejects that are really there."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder, "logs")
        logs.mkdir()
        (logs / name).write_bytes(data)
        db = Path(folder, "db")
        try:
            report = ingest([logs], db, formats=[FAKE] if fake else None)
        except InputError as error:
            assert error.message  # noqa: PT017
            assert not db.exists()
            return None, []
        with Store(db) as store:
            rows = store.execute(
                "SELECT rows_in, rows_loaded, rows_rejected, (SELECT count(*) FROM rejects), "
                "(SELECT count(*) FROM host_util), (SELECT count(*) FROM gpu_samples), (SELECT count(*) FROM jobs) "
                "FROM sources"
            ).fetchall()
        return report, rows


@SETTINGS
@pytest.mark.parametrize("name", VALID)
@given(st.data())
def test_no_row_of_a_spoiled_log_goes_missing(name: str, data: st.DataObject) -> None:
    report, rows = _ingest(name, data.draw(spoiled(VALID[name])))
    if report is None:
        return
    (source,) = report.sources
    assert source.status in {"loaded", "failed"}
    assert len(rows) == (source.status == "loaded")
    for rows_in, loaded, rejected, kept, hosts, gpus, jobs in rows:
        assert rows_in == loaded + rejected
        assert rejected == kept
        assert source.rows_rejected == rejected
        if name == "cluster_job_log":
            assert jobs == loaded
        elif name != "cluster_machine_list":
            assert hosts + gpus == loaded


@SETTINGS
@given(st.integers(0, 400), st.integers(0, 5), st.sampled_from(PACK), st.data())
def test_a_cut_off_or_damaged_compressed_log_loses_no_sound_row(
    count: int, bad: int, pack: Callable[[bytes], bytes], data: st.DataObject
) -> None:
    whole = lines(count, bad=bad)
    packed = pack(whole)
    cut = data.draw(st.integers(1, len(packed)))
    report, rows = _ingest("log", packed[:cut], fake=True)
    if report is None:
        return
    ((rows_in, loaded, rejected, kept, hosts, _, _),) = rows
    assert rows_in == loaded + rejected
    assert (rejected, loaded) == (kept, hosts)
    if cut == len(packed):
        assert (loaded, rejected) == (count, bad)
    elif pack is not bytes:
        assert report.sources[0].reasons
        assert loaded <= count
        assert rejected <= bad + 1
