from __future__ import annotations

import json
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.core.local_time import Stamp, WallClock
from gpuctl.ingest.formats import philly_jobs, philly_jobs_csv, philly_machines
from gpuctl.ingest.philly.attempts import Timeline, timeline
from tests.example_counts import examples
from tests.philly_log import RecordingSink, attempt, job, load_into, log

DATE = "%Y-%m-%d %H:%M:%S"
CLOCK = WallClock("America/Los_Angeles")

# around the doubled hour of 2017-11-05, so that it is met often
times = st.integers(0, 6 * 3600).map(lambda s: (datetime(2017, 11, 4, 23) + timedelta(seconds=s)).strftime(DATE))
maybe_times = st.one_of(times, times, times, st.sampled_from(["None", "", None]))
words = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
gangs = st.dictionaries(words, st.sets(st.integers(0, 15), max_size=8), max_size=3)
attempts = st.builds(
    lambda a, b, gang: attempt(a, b, *((m, sorted(g)) for m, g in gang.items())), maybe_times, maybe_times, gangs
)
jobs = st.builds(
    lambda submit, tries, **other: job("", submit, *tries, **other),
    maybe_times,
    st.lists(attempts, max_size=4),
    status=st.one_of(st.sampled_from(["Pass", "Killed", "Failed"]), words),
    vc=st.one_of(words, st.none()),
    user=st.one_of(words, st.none()),
)
logs = st.lists(jobs, max_size=6).map(lambda found: [one | {"jobid": f"job-{i}{i}"} for i, one in enumerate(found)])


def loaded(data: bytes | str) -> RecordingSink:
    kept = RecordingSink()
    load_into(kept, philly_jobs.FORMAT, data)
    return kept


def missing(text: str | None) -> str | None:
    return None if text in ("None", "") else text


@settings(max_examples=examples(200))
@given(logs, st.sampled_from([None, 1, 4]), st.booleans())
def test_written_files_can_be_read(made: list[dict[str, Any]], indent: int | None, ascii_only: bool) -> None:
    kept = loaded(json.dumps(made, indent=indent, ensure_ascii=ascii_only))
    assert kept.rejects == []
    assert kept.rows_loaded == len(made)
    words_read = [(row["job"], row["source_state"], row["queue"], row["user"]) for row in kept.tables.get("jobs", [])]
    assert words_read == [(one["jobid"], one["status"], one["vc"], one["user"]) for one in made]
    stamps = [(one["start_time"], one["end_time"]) for each in made for one in each["attempts"]]
    read = [(row["start_ts"], row["end_ts"]) for row in kept.tables.get("attempts", [])]
    for logged, stored in zip(stamps, read, strict=True):
        for text, ts in zip(logged, stored, strict=True):
            wall = CLOCK.read(missing(text) or "")
            assert (ts and int(ts.timestamp())) in ({wall.utc, wall.later} if wall else {None})
    places = {
        (each["jobid"], number, part["ip"]): {int(name[3:]) for name in part["gpus"]}
        for each in made
        for number, one in enumerate(each["attempts"])
        for part in one["detail"]
    }
    rows = kept.tables.get("placements", [])
    assert {(row["job"], row["attempt"], row["machine"]): set(row["gpu_indices"]) for row in rows} == places
    assert all(row["gpus"] == len(row["gpu_indices"]) for row in rows)


@settings(max_examples=examples(200))
@given(logs)
def test_an_array_and_its_lines_are_the_same(made: list[dict[str, Any]]) -> None:
    if made:
        assert loaded("\n".join(map(json.dumps, made))).tables == loaded(json.dumps(made)).tables


stamps = st.one_of(st.none(), times.map(CLOCK.read), times.map(CLOCK.read))


@given(stamps, st.lists(st.tuples(stamps, stamps), max_size=5))
def test_no_gpu_second_is_counted_twice(submit: Stamp | None, spans: list[tuple[Stamp | None, Stamp | None]]) -> None:
    found: Timeline = timeline(submit, spans)
    held = sorted(
        (a.start.utc, a.released.utc) for a in found.attempts if a.start and a.released and a.held is not None
    )
    assert all(start <= end for start, end in held)
    assert all(end <= start for (_, end), (start, _) in pairwise(held))
    for one in found.attempts:
        assert one.wait is None or one.wait >= 0
        assert one.run is None or (one.held is not None and 0 <= one.held <= one.run)
        assert (one.wait is None) == (one.queued is None or one.start is None)
    assert found.run_sum == (sum(a.held for a in found.attempts if a.held is not None) if held else None)
    assert all(value is None or value >= 0 for value in (found.wait, found.run_span, found.run_last))


GOOD = [
    job(f"job-{i}{i}", "2017-10-07 01:00:00", attempt("2017-10-07 01:00:30", "2017-10-07 02:00:00", (f"m{i}", [0, 1])))
    for i in range(5)
]


def layouts() -> list[bytes]:
    lines = [json.dumps(one) for one in GOOD]
    return [text.encode() for text in (log(*GOOD), "[" + ", ".join(lines) + "]", "\n".join(lines))]


@given(st.sampled_from(layouts()), st.data())
@settings(max_examples=examples(300))
def test_whatever_happens_to_a_log_every_row_is_accounted_for(whole: bytes, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(start, min(len(whole), start + 300)))
        insert = data.draw(
            st.one_of(st.binary(max_size=6), st.sampled_from([b'"', b"{", b"}", b"[", b"]", b'{"a":', b"\\"]))
        )
        whole = whole[:start] + insert + whole[end:]
    try:
        kept = loaded(whole)
    except InputError:
        assert not whole.decode("utf-8", "replace").strip("\ufeff \t\r\n\v\f\x1c\x1d\x1e\x1f\x85,")
        return
    assert len(kept.column("jobs", "job")) == kept.rows_loaded
    assert kept.rows_in == kept.rows_loaded + len(kept.rejects)


@given(st.sampled_from(layouts()), st.integers(0, 4), st.floats(0, 1, exclude_max=True), st.integers(0, 255))
@settings(max_examples=examples(400))
def test_one_broken_byte_costs_at_most_one_job(whole: bytes, which: int, where: float, byte: int) -> None:
    begin = whole.index(b'{"status"' if b'{"status"' in whole else b"{\n")
    starts = [i for i in range(begin, len(whole)) if whole[i : i + 1] == b"{" and b'"status"' in whole[i : i + 20]]
    assert len(starts) == 5
    ends = [*[whole.rindex(b"}", 0, start) + 1 for start in starts[1:]], whole.rindex(b"}") + 1]
    at = starts[which] + int(where * (ends[which] - starts[which]))
    kept = loaded(whole[:at] + bytes([byte]) + whole[at + 1 :])
    others = [one["jobid"] for i, one in enumerate(GOOD) if i != which]
    assert [name for name in kept.column("jobs", "job") if name in others] == others


@given(st.lists(st.one_of(st.binary(max_size=30), st.sampled_from([b"m1,8, 24GB", b"2017-10-09 07:01:55,6,2,12,q"]))))
def test_lines_of_any_bytes_are_accounted_for(lines: list[bytes]) -> None:
    for fmt, header in (
        (philly_machines.FORMAT, b"machineId, number of GPUs, single GPU mem"),
        (philly_jobs_csv.FORMAT, b"timestamp,duration,num_gpus,gpu_time,cluster"),
    ):
        kept = RecordingSink()
        load_into(kept, fmt, b"\n".join([header, *lines]))
        assert kept.rows_in == sum(1 for line in b"\n".join(lines).split(b"\n") if line.strip())


@given(st.text(max_size=12), st.binary(max_size=300))
def test_sniffing_never_fails(name: str, head: bytes) -> None:
    for fmt in (philly_jobs.FORMAT, philly_machines.FORMAT, philly_jobs_csv.FORMAT):
        fmt.sniff(name, head)
