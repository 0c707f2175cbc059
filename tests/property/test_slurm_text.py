"""Accounting text as it should be, and every way to spoil it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.ingest.formats.slurm_sacct import FORMAT
from gpuctl.ingest.read import pieces
from tests.example_counts import examples
from tests.philly_log import new_store
from tests.sacct_records import DEFAULTS, text
from tests.slurm_loading import load, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.store.database import Store

SETTINGS = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])

_plain = st.text(alphabet="abc-_. é", min_size=1, max_size=8).map(str.strip).filter(bool)
_odd = st.text(alphabet="ab|\n\"', 1:é", min_size=1, max_size=10)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder, new_store(Path(folder)) as opened:
        yield opened


def fresh(store: Store) -> Store:
    """The store, empty again."""
    for table in ("job_rows", "attempt_rows", "placements", "queues", "rejects"):
        store.execute(f"DELETE FROM {table}")
    return store


@SETTINGS
@given(st.lists(_odd, min_size=1, max_size=6), st.sampled_from([64, 1 << 20]))
def test_odd_names_are_read_right_or_counted(store: Store, names: list[str], size: int) -> None:
    """Whatever stands in a name, every record is loaded with that name or rejected."""
    records = [{"JobIDRaw": str(1000 + i), "JobID": str(1000 + i), "JobName": name} for i, name in enumerate(names)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", size)
        sink = load(FORMAT, text(*records), fresh(store))
    made = {row["job"]: row["name"] for row in rows(store, "jobs")}
    for record in records:
        if record["JobIDRaw"] in made:
            assert made[record["JobIDRaw"]] == record["JobName"]
    assert len(made) + len(sink.rejects) >= len(records)


@SETTINGS
@given(st.lists(_odd.filter(lambda name: "\x1f" not in name), min_size=1, max_size=6))
def test_with_the_unit_separator_nothing_is_lost(store: Store, names: list[str]) -> None:
    records = [{"JobIDRaw": str(1000 + i), "JobID": str(1000 + i), "JobName": name} for i, name in enumerate(names)]
    sink = load(FORMAT, text(*records, delimiter="\x1f"), fresh(store))
    assert sink.rejects == []
    assert {row["job"]: row["name"] for row in rows(store, "jobs")} == {r["JobIDRaw"]: r["JobName"] for r in records}


@SETTINGS
@given(st.permutations(list(DEFAULTS)), st.sampled_from(["|", "\x1f", "\t", ";", "^"]), _plain)
def test_any_order_of_fields_gives_the_same(store: Store, order: list[str], delimiter: str, name: str) -> None:
    made = []
    for only in (list(DEFAULTS), order):
        load(FORMAT, text({"JobName": name}, delimiter=delimiter, only=" ".join(only)), fresh(store))
        made.append([rows(store, table) for table in ("jobs", "attempts", "placements")])
    assert made[0] == made[1]


_WHOLE = text(
    *({"JobIDRaw": str(i), "JobID": f"7_{i}", "JobName": n} for i, n in enumerate(("a", "b|c", "d\ne", "f")))
).encode()


@st.composite
def _spoilt(draw: st.DrawFn) -> bytes:
    """The text with bytes changed, taken out, put in, lines swapped, or its end cut off."""
    data = bytearray(_WHOLE)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        what = draw(st.integers(0, 4))
        if what == 0:
            data[at : at + 1] = bytes([draw(st.integers(0, 255))])
        elif what == 1:
            del data[at : at + draw(st.integers(1, 40))]
        elif what == 2:
            odd = [b"|", b"\n", b"\xff", b"\r\n", b"\0", b'"', b"|||", b"[1-999999999999]"]
            data[at:at] = draw(st.sampled_from(odd))
        elif what == 3:
            lines = draw(st.permutations(bytes(data).split(b"\n")))
            data = bytearray(b"\n".join(lines))
        else:
            del data[at:]
    return bytes(data)


@SETTINGS
@given(_spoilt(), st.sampled_from([32, 1 << 20]))
def test_spoilt_text_never_breaks_the_reader(store: Store, data: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", size)
        try:
            sink = load(FORMAT, data, fresh(store))
        except InputError:
            return
    assert sink.rows_in == sink.rows_loaded + len(sink.rejects)
    assert store.value("SELECT count(*) FROM attempts") <= sink.rows_loaded
    assert store.value("SELECT count(*) FROM jobs") == store.value("SELECT count(DISTINCT job) FROM attempts")


@given(st.binary(max_size=400), st.text(max_size=100))
def test_looking_at_any_bytes_never_fails(head: bytes, words: str) -> None:
    FORMAT.sniff("x", head)
    FORMAT.sniff("x", b"JobID|State|" + words.encode("utf-8", "surrogatepass"))


_attempts = st.lists(st.tuples(st.integers(0, 59), st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=6)


@SETTINGS
@given(_attempts, st.integers(1, 3), st.randoms(use_true_random=False))
def test_attempts_are_numbered_by_submission_however_they_come(
    store: Store, spans: list[tuple[int, int, int]], files: int, shuffle: object
) -> None:
    """Attempts of one job in any order over several files: one row each, numbers without gaps, one job."""
    fresh(store)
    records = [
        {
            "Submit": f"2026-11-20T10:{minute:02d}:00",
            "Start": f"2026-11-20T10:{minute:02d}:{wait:02d}",
            "End": f"2026-11-20T11:{run:02d}:00",
        }
        for minute, wait, run in spans
    ]
    shuffle.shuffle(records)  # type: ignore[attr-defined]
    for source in range(files):
        load(FORMAT, text(*records[source::files]), store, source=source + 1)
    made = rows(store, "attempts")
    assert [row["attempt"] for row in made] == list(range(len({minute for minute, _, _ in spans})))
    assert [row["queued_ts"] for row in made] == sorted({f"2026-11-20 10:{m:02d}:00" for m, _, _ in spans})
    (job,) = rows(store, "jobs")
    assert (job["attempts"], job["submit_ts"]) == (len(made), made[0]["queued_ts"])
    assert len(rows(store, "placements")) == len(made)
