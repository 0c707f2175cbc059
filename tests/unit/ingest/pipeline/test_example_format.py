"""The worked example of docs/how-to/add-a-format.md: added as the page says, it is found, read and asked about."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.core.errors import InputError
from gpuctl.ingest import formats
from gpuctl.ingest.core.job_rows import DUPLICATE_JOB
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import all_formats, built_in
from gpuctl.store.database import Store
from tests.philly_log import RecordingSink, load_into

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.ingest.core.format import Format

EXAMPLE = Path(__file__).resolve().parents[4] / "docs" / "examples" / "format"
SAMPLE = EXAMPLE / "jobs.turnstile"
HEADER = "#turnstile jobs 1\n"
ROW = "7\tada\tvision\t4\t100\t160\t900\tok\tg1:2,g2:2"


def example() -> Format:
    """The format, from its file."""
    spec = importlib.util.spec_from_file_location("turnstile_jobs", EXAMPLE / "turnstile_jobs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Format = module.FORMAT
    return found


FORMAT = example()


def loaded(text: str | bytes) -> RecordingSink:
    sink = RecordingSink()
    load_into(sink, FORMAT, text)
    return sink


def _forget() -> None:
    built_in.cache_clear()
    all_formats.cache_clear()


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module lies in the package of formats, as if it had been copied there."""
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(EXAMPLE)])
    _forget()
    yield
    _forget()
    sys.modules.pop(f"{formats.__name__}.turnstile_jobs", None)


@pytest.mark.usefixtures("added")
def test_an_added_format_is_recognised_loaded_and_queried(tmp_path: Path) -> None:
    report = ingest([SAMPLE], tmp_path / "t.duckdb", cluster="here")
    (source,) = report.sources
    assert (source.format, source.rows_in, source.rows_loaded, source.rows_rejected) == ("turnstile-jobs", 9, 8, 1)
    with Store(tmp_path / "t.duckdb") as store:
        found = analyze(store, Options(sections=("overview", "queueing")))
    tables = {table.name: table.frame.to_dicts() for table in found.tables}
    (overview,) = tables["overview"]
    assert (overview["jobs"], overview["attempts"], overview["users"], overview["gpus"]) == (8, 6, 3, 16)
    # 8 GPUs for 3 600, 5 340 and 4 000 s, 4 for 1 080 and 7 040, 2 from 9 510 s to the log's end at 12 000
    held = 8 * (3600 + 5340 + 4000) + 4 * (1080 + 7040) + 2 * 2490
    assert overview["gpu_hours"] == pytest.approx(held / 3600)
    waits = sorted([60, 120, 3060, 60, 7000, 10])
    (every,) = (row for row in tables["wait_by_size"] if row["size_bucket"] == "all")
    assert (every["waits"], every["p50_min"]) == (6, pytest.approx((waits[2] + waits[3]) / 120))
    (never,) = (row for row in tables["never_started"] if row["size_bucket"] == "all")
    assert (never["waiting"], never["given_up"], never["given_up_p50_min"]) == (1, 1, pytest.approx(5200 / 60))


def test_every_column_of_a_job() -> None:
    sink = loaded(f"{HEADER}{ROW}\n")
    (job,) = sink.tables["jobs"]
    assert (job["gpus"], job["nodes"], job["wait_s"], job["run_sum_s"], job["state"]) == (4, 2, 60, 740, "completed")
    assert sink.column("placements", "machine") == ["g1", "g2"]
    assert [at.timestamp() for at in sink.column("attempts", "released_ts")] == [900]


@pytest.mark.parametrize(
    ("at", "cell", "reason"),
    [
        (0, "-", "id is empty, or cannot be printed"),
        (1, "a\x07", "user contains unprintable characters"),
        (2, "q\x1b[2J", "queue contains unprintable characters"),
        (3, "four", "gpus is not a whole number of at most 10 digits"),
        (3, "5", "places do not hold the GPUs of a job that started"),
        (4, "", "submitted is not a whole number of at most 10 digits"),
        (5, "99", "started before it was submitted"),
        (5, "1e3", "started is not a whole number of at most 10 digits"),
        (5, "-", "places do not hold the GPUs of a job that started"),
        (6, "159", "ended before it was started or submitted"),
        (6, "99999999999", "ended is not a whole number of at most 10 digits"),
        (7, "fine", "result is none of ok, error, cancelled, running, waiting"),
        (8, "g1:2;g2:2", "places are not machine:GPUs with commas between, each machine once"),
        (8, "g1:2,g1:2", "places are not machine:GPUs with commas between, each machine once"),
        (8, "g1:4,g2:0", "places are not machine:GPUs with commas between, each machine once"),
        (8, "-\t-", "not 9 fields with tabs between them"),
    ],
)
def test_a_wrong_field_is_rejected_with_its_line(at: int, cell: str, reason: str) -> None:
    cells = ROW.split("\t")
    cells[at] = cell
    bad = "\t".join(cells)
    sink = loaded(f"{HEADER}{bad}\n8{ROW[1:]}\n")
    assert sink.rejects == [(2, reason, bad.encode())]
    assert sink.column("jobs", "job") == ["8"]


def test_a_job_that_is_listed_twice_is_stored_once() -> None:
    sink = loaded(f"{HEADER}{ROW}\n{ROW}\n")
    assert (sink.rows_loaded, sink.rows_already_stored, sink.rejects) == (1, 1, [])


def test_another_job_of_the_same_id_is_rejected() -> None:
    other = ROW.replace("\tok\t", "\terror\t")
    sink = loaded(f"{HEADER}{ROW}\n{other}\n")
    assert (sink.rows_loaded, sink.rejects) == (1, [(3, DUPLICATE_JOB, other.encode())])


@pytest.mark.parametrize("text", ["", "\n", "#turnstile jobs 2\n", ROW, "\xff"])
def test_another_file_is_an_input_error(text: str) -> None:
    assert FORMAT.sniff("jobs.turnstile", text.encode("latin-1")) is None
    with pytest.raises(InputError, match="line 1 is not #turnstile jobs 1"):
        loaded(text.encode("latin-1"))


def test_cut_at_every_byte() -> None:
    whole = SAMPLE.read_bytes()
    for end in range(len(HEADER), len(whole)):
        sink = loaded(whole[:end])
        assert sink.rows_in == whole[len(HEADER) : end].count(b"\n") + (whole[end - 1 : end] != b"\n")


@settings(max_examples=200, derandomize=True)
@given(st.lists(st.one_of(st.binary(max_size=40), st.just(ROW.encode())), max_size=8))
def test_whatever_the_bytes_every_row_is_loaded_or_rejected(lines: list[bytes]) -> None:
    body = b"\n".join(lines)
    FORMAT.sniff("", body)
    # the ledger's sum is checked by what loads it
    sink = loaded(HEADER.encode() + body)
    assert sink.rows_in == sum(1 for line in body.split(b"\n") if line.removesuffix(b"\r").strip())
