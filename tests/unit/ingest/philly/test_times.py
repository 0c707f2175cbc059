from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpuctl.core.local_time import Stamp, WallClock, elapsed, settle
from gpuctl.ingest.philly.attempts import Attempt, Timeline, timeline

CLOCK = WallClock("America/Los_Angeles")


def stamp(text: str | None) -> Stamp | None:
    """``MM-DD HH:MM[:SS]`` of 2017; a missing month and day is an ordinary one."""
    if text is None:
        return None
    day, _, clock = text.rpartition(" ")
    clock += ":00" * (clock.count(":") == 1)
    read = CLOCK.read(f"{day if day.startswith('20') else '2017-' + (day or '10-07')} {clock}")
    assert read is not None
    return read


def utc(at: Stamp | None) -> str | None:
    return datetime.fromtimestamp(at.utc, UTC).strftime("%m-%d %H:%M:%S") if at else None


def line(submit: str | None, *spans: tuple[str | None, str | None]) -> Timeline:
    return timeline(stamp(submit), [(stamp(start), stamp(end)) for start, end in spans])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2017-10-07 01:12:09", "2017-10-07T08:12:09"),
        ("2017-12-07 01:12:09", "2017-12-07T09:12:09"),
        ("2017-11-05 00:59:59", "2017-11-05T07:59:59"),
        ("2017-11-05 01:00:00", "2017-11-05T08:00:00"),
        ("2017-11-05 01:59:59", "2017-11-05T08:59:59"),
        ("2017-11-05 02:00:00", "2017-11-05T10:00:00"),
        ("2018-03-11 01:59:59", "2018-03-11T09:59:59"),
        ("2018-03-11 02:30:00", "2018-03-11T10:30:00"),
        ("2018-03-11 03:00:00", "2018-03-11T10:00:00"),
        ("1971-01-01 00:00:00", "1971-01-01T08:00:00"),
    ],
)
def test_local_stamps_become_utc(text: str, expected: str) -> None:
    read = CLOCK.read(text)
    assert read is not None
    assert datetime.fromtimestamp(read.utc, UTC).strftime("%Y-%m-%dT%H:%M:%S") == expected


def test_a_change_within_an_hour_is_seen() -> None:
    clock = WallClock("Australia/Lord_Howe")  # half an hour back at 02:00, so 01:30 to 01:59 occur twice
    first, second = clock.read("2017-04-02 01:29:59"), clock.read("2017-04-02 01:30:00")
    assert first is not None
    assert second is not None
    assert first.later is None
    assert second.later == second.utc + 1800


def test_only_the_doubled_hour_has_two_readings() -> None:
    texts = ("2017-11-05 00:59:59", "2017-11-05 01:00:00", "2017-11-05 01:59:59", "2017-11-05 02:00:00")
    assert [s.later and s.later - s.utc for s in map(CLOCK.read, texts) if s] == [None, 3600, 3600, None]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "none",
        "2017-10-07",
        "2017-10-07T01:12:09",
        "2017-10-07 01:12",
        "2017-10-07 01:12:60",
        "2017-10-07 24:00:00",
        "2017-02-29 01:12:09",
        "2017-13-01 01:12:09",
        "2017-10-7 01:12:09",
        " 2017-10-07 01:12:09",
        "2017-10-07 01:12:09 PDT",
        "2017-10-07 01:12:09.5",
        "2017-W40-6 01:12:09",
        "17-10-07 01:12:09",
        "0001-01-01 00:00:00",
        "1970-12-31 23:59:59",
        "2200-01-01 00:00:00",
        "9999-12-31 23:59:59",
        "\uff12\uff1017-10-07 01:12:09",
        "2017-10-07 0\t:12:09",
        "2017-10-07 01:12:09\n",
        "x" * 100_000,
    ],
)
def test_an_invalid_timestamp_is_none(text: str) -> None:
    assert CLOCK.read(text) is None


def test_elapsed_is_the_difference_of_the_clock_over_a_change() -> None:
    start, end = stamp("11-05 00:30"), stamp("11-05 03:30")
    assert start is not None
    assert end is not None
    assert elapsed(start, end) == 3 * 3600
    assert end.utc - start.utc == 4 * 3600


def test_the_later_reading_is_taken_only_where_order_asks_for_it() -> None:
    early, late, after = stamp("11-05 01:10"), stamp("11-05 01:50"), stamp("11-05 02:10")
    assert early is not None
    assert late is not None
    assert after is not None
    assert settle(late, early) == late
    assert settle(early, None) == early
    assert settle(early, after) == early
    moved = settle(early, late)
    assert moved.second
    assert moved.utc == early.utc + 3600
    assert elapsed(late, moved) == 20 * 60
    assert elapsed(moved, after) == 60 * 60
    assert settle(late, moved).utc == late.utc + 3600


def test_an_attempt_that_runs_backwards_within_the_doubled_hour_went_through_the_change() -> None:
    found = line("11-05 01:40", ("11-05 01:50", "11-05 01:10"), ("11-05 01:20", "11-05 02:30"))
    first, second = found.attempts
    assert (first.wait, first.run, utc(first.start), utc(first.end)) == (600, 1200, "11-05 08:50:00", "11-05 09:10:00")
    assert (second.wait, second.run, utc(second.start)) == (600, 70 * 60, "11-05 09:20:00")
    assert (found.run_span, found.run_sum, found.run_last) == (40 * 60, 90 * 60, 70 * 60)
    assert found.quirks == ["ambiguous_hour"]
    assert first.quirks == second.quirks == ["ambiguous_hour"]


def test_a_wait_that_runs_backwards_within_the_doubled_hour_went_through_the_change() -> None:
    found = line("11-05 01:50", ("11-05 01:05", "11-05 03:00"))
    assert (found.wait, found.attempts[0].quirks) == (15 * 60, ["ambiguous_hour"])


def test_a_submission_in_the_doubled_hour_marks_the_job_alone() -> None:
    found = line("11-05 01:50", ("11-05 02:05", "11-05 03:00"))
    assert (found.quirks, found.attempts[0].quirks, found.wait) == (["ambiguous_hour"], [], 15 * 60)


def test_a_job_of_two_attempts() -> None:
    found = line("01:11:39", ("01:12:09", "01:13:23"), ("01:13:30", "10-09 06:53:12"))
    first, second = found.attempts
    assert (first.wait, first.run, second.wait, second.run) == (30, 74, 7, 193182)
    assert (found.wait, found.run_span, found.run_sum, found.run_last) == (30, 193263, 193256, 193182)
    assert second.queued == first.end == first.released
    assert found.quirks == first.quirks == second.quirks == []


def test_overlapping_attempts_count_no_gpu_second_twice() -> None:
    found = line("01:00", ("02:00", "10:00"), ("07:00", "10:00"))
    first, second = found.attempts
    assert (first.run, first.held, first.released, first.quirks) == (8 * 3600, 5 * 3600, second.start, ["overlap"])
    assert (second.queued, second.wait, second.run, second.quirks) == (None, None, 3 * 3600, [])
    assert (found.run_span, found.run_sum, found.run_last) == (8 * 3600, 8 * 3600, 3 * 3600)
    assert found.quirks == ["overlap"]


def test_attempts_in_another_order_than_time_are_cut_in_order_of_time() -> None:
    found = line("01:00", ("06:00", "10:00"), ("02:00", "07:00"))
    first, second = found.attempts
    assert (first.held, first.quirks) == (4 * 3600, [])
    assert (second.held, second.run, second.quirks) == (4 * 3600, 5 * 3600, ["overlap"])
    assert (found.run_sum, found.run_span) == (8 * 3600, 3600)


def test_attempts_that_start_together_hold_the_gpus_once() -> None:
    found = line("01:00", ("02:00", "03:00"), ("02:00", "04:00"))
    assert [a.held for a in found.attempts] == [0, 2 * 3600]


def test_back_to_back_attempts_do_not_overlap() -> None:
    found = line("01:00", ("02:00", "03:00"), ("03:00", "04:00"))
    assert found.quirks == []
    assert (found.attempts[1].wait, found.run_sum) == (0, 2 * 3600)


def test_missing_times_leave_what_depends_on_them_unknown() -> None:
    found = line("03:04", ("03:07", None), ("03:11", "03:12"), ("03:14", None), (None, "03:15"))
    waits = [(utc(a.queued), a.wait) for a in found.attempts]
    assert waits == [("10-07 10:04:00", 180), (None, None), ("10-07 10:12:00", 120), (None, None)]
    assert [utc(a.released) for a in found.attempts] == [f"10-07 10:{m}:00" for m in (11, 12, 15, 15)]
    assert [a.run for a in found.attempts] == [None, 60, None, None]
    assert [a.quirks for a in found.attempts] == [["no_end"], [], ["no_end"], ["no_start"]]
    assert (found.run_span, found.run_sum, found.run_last, found.quirks) == (8 * 60, 60, None, ["missing_time"])


def test_a_job_that_still_runs_holds_its_gpus() -> None:
    found = line("01:00", ("02:00", None))
    assert (found.attempts[0].released, found.run_span, found.run_sum, found.run_last) == (None, None, None, None)
    assert found.quirks == ["missing_time"]


def test_a_missing_end_is_not_taken_from_a_time_before_the_start() -> None:
    found = line("01:00", ("05:00", None), ("03:00", "04:00"), ("06:00", "07:00"))
    assert utc(found.attempts[0].released) == "10-07 13:00:00"


def test_a_missing_end_with_no_time_after_it_stays_unknown() -> None:
    assert line("01:00", ("05:00", None), (None, None)).attempts[0].released is None


def test_a_start_before_the_submission_has_no_wait() -> None:
    found = line("02:00", ("01:00", "03:00"))
    first = found.attempts[0]
    assert (found.wait, first.wait, first.queued, first.quirks) == (None, None, None, ["start_before_submit"])
    assert (found.run_span, found.quirks) == (2 * 3600, ["start_before_submit"])


def test_an_end_before_the_start_has_no_run() -> None:
    found = line("01:00", ("03:00", "02:00"))
    first: Attempt = found.attempts[0]
    assert (first.run, first.held, first.released, first.quirks) == (None, None, first.start, ["end_before_start"])
    assert (found.run_span, found.run_sum, found.run_last, found.wait) == (None, None, None, 2 * 3600)


def test_no_attempts_and_no_submission() -> None:
    found = line(None)
    assert (found.wait, found.run_span, found.run_sum, found.run_last) == (None, None, None, None)
    assert found.quirks == ["no_attempts", "missing_time"]
    assert line(None, ("01:00", "02:00")).quirks == ["missing_time"]
