"""Characters for values: known ones, and what holds for all."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.reports.terminal.text_graphics import (
    BLOCKS,
    PLAIN,
    UNKNOWN,
    Signs,
    axis,
    bars,
    decades,
    level,
    phases,
    resampled,
    shares,
    signs_of,
    stacked,
    time_ticks,
)

SIGNS = st.sampled_from([BLOCKS, PLAIN])
ANY = st.one_of(st.none(), st.floats(), st.floats(min_value=0))


@pytest.mark.parametrize("encoding", ["utf-8", "UTF-16", None])
def test_blocks_where_the_encoding_has_them(encoding: str | None) -> None:
    assert signs_of(encoding) is BLOCKS


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "cp1252", "no-such-encoding"])
def test_ascii_where_it_lacks_one(encoding: str) -> None:
    assert signs_of(encoding) is PLAIN
    assert "".join((PLAIN.levels, PLAIN.fills, PLAIN.edge)).isascii()


@pytest.mark.parametrize("signs", [BLOCKS, PLAIN])
def test_no_sign_stands_for_two_things(signs: Signs) -> None:
    assert len(set(signs.levels)) == len(signs.levels)
    assert len(set(signs.fills)) == len(signs.fills)
    assert UNKNOWN not in signs.levels + signs.fills


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, 0), (1e-300, 1), (12.5, 1), (12.6, 2), (50.0, 4), (99.0, 8), (100.0, 8), (1e300, 8)]
    + [(value, None) for value in (None, math.nan, math.inf, -math.inf, -1.0)],
)
def test_levels_are_equal_parts(value: float | None, expected: int | None) -> None:
    assert level(value, 100.0, 8) == expected


@settings(max_examples=60)
@given(values=st.lists(st.floats(min_value=0, allow_infinity=False), min_size=2), top=st.floats(5e-324, 1e308))
def test_levels_rise_with_values(values: list[float], top: float) -> None:
    found = [level(value, top, 8) for value in sorted(values)]
    assert all(a is not None and b is not None and 0 <= a <= b <= 8 for a, b in pairwise(found))


def test_bars_of_known_values() -> None:
    assert bars([0, 1, 4, 8, None, 8.5], 8, BLOCKS) == (" ▁▄█?█",)
    assert bars([0, 1, 4, 7, math.nan], 7, PLAIN) == (" .=#?",)
    assert bars([0, 4, 8, 12, 16, None], 16, BLOCKS, 2) == ("   ▄█ ", " ▄███?")


@settings(max_examples=60)
@given(values=st.lists(ANY, max_size=30), top=st.floats(0, 1e308), signs=SIGNS, height=st.integers(1, 4))
def test_bars_are_as_wide_as_there_are_values(
    values: list[float | None], top: float, signs: Signs, height: int
) -> None:
    lines = bars(values, top, signs, height)
    assert [len(line) for line in lines] == [len(values)] * height
    for upper, lower in pairwise(lines):
        # nothing hangs in the air
        assert all(low == signs.full for up, low in zip(upper, lower, strict=True) if up not in {" ", UNKNOWN})


def test_parts_of_a_whole() -> None:
    assert stacked([1, 2, 1], 8, BLOCKS) == "██▒▒▒▒░░"
    assert stacked([0, 3, None, 1], 4, PLAIN) == "===."
    assert stacked([0, math.nan, -1], 4, PLAIN) == "    "
    assert stacked([1e308, 1e308], 4, PLAIN) == "##=="


@settings(max_examples=60)
@given(parts=st.lists(ANY, max_size=14), width=st.integers(1, 200), signs=SIGNS)
def test_a_stacked_bar_has_each_part_in_order_and_in_its_share(
    parts: list[float | None], width: int, signs: Signs
) -> None:
    drawn = stacked(parts, width, signs)
    assert len(drawn) == width
    sizes = [p if p is not None and 0 < p < math.inf else 0.0 for p in parts]
    if any(sizes):
        places = [signs.fills.index(sign) for sign in drawn]
        assert places == sorted(places)
        largest = max(sizes)
        whole = math.fsum(size / largest for size in sizes)
        for part, size in enumerate(sizes[: len(signs.fills) - 1]):
            assert abs(places.count(part) - size / largest / whole * width) <= 1 + 1e-6
    else:
        assert drawn == " " * width


def test_means_over_equal_parts() -> None:
    spans = [(0.0, 1.0, 4.0), (1.0, 4.0, 8.0), (6.0, 8.0, 2.0)]
    assert resampled(spans, 0, 8, 4) == [6.0, 8.0, None, 2.0]
    assert resampled(spans, 0, 8, 1) == [pytest.approx((4 + 24 + 4) / 6)]
    assert resampled([(0.0, 2.0, None), (2.0, 4.0, math.nan), (4.0, 6.0, 1.0)], 0, 6, 3) == [None, None, 1.0]
    assert resampled([], 0, 1, 2) == [None, None]


@settings(max_examples=60)
@given(
    values=st.lists(st.floats(0, 1e300), min_size=1, max_size=40),
    width=st.integers(1, 150),
    low=st.floats(-1e9, 1e9),
    step=st.floats(1e-3, 1e6),
)
def test_a_mean_lies_between_its_values(values: list[float], width: int, low: float, step: float) -> None:
    high = low + len(values) * step
    spans = [(low + i * step, low + (i + 1) * step, value) for i, value in enumerate(values)]
    found = resampled(spans, low, high, width)
    assert len(found) == width
    # far from 0 the ends of the parts themselves are rounded: by so much of a part
    rounding = 4 * math.ulp(max(abs(low), abs(high))) * (width + len(values)) / (high - low)
    assert math.fsum(v / width for v in found if v is not None) == pytest.approx(
        math.fsum(v / len(values) for v in values), rel=1e-9, abs=rounding * max(values)
    )
    assert all(v is not None and min(values) * (1 - 1e-9) <= v <= max(values) * (1 + 1e-9) for v in found)
    if len(set(values)) == 1:
        assert found == pytest.approx([values[0]] * width)


def test_shares_between_edges() -> None:
    points = [(0.0, 10.0), (1.0, 30.0), (1.0, 40.0), (3.0, 90.0)]
    assert shares(points, [0, 1, 2, 4]) == (10.0, [30.0, 0.0, 50.0], 90.0)
    assert shares([], [0, 1]) == (0.0, [0.0], 0.0)
    assert shares([(math.nan, 5.0), (1.0, math.inf), (2.0, 7.0)], [0, 1, 2]) == (0.0, [0.0, 7.0], 7.0)


@settings(max_examples=60)
@given(
    points=st.lists(st.tuples(st.floats(), st.floats(0, 100))),
    edges=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20).map(sorted),
)
def test_shares_are_never_negative_and_sum_to_what_is_there(
    points: list[tuple[float, float]], edges: list[float]
) -> None:
    below, between, total = shares(points, edges)
    assert below >= 0
    assert all(value >= 0 for value in between)
    assert below + math.fsum(between) <= total + 1e-9


def test_ticks_stand_in_their_columns_or_not_at_all() -> None:
    assert axis([(0, "a"), (4, "bb"), (5, "no"), (9, "far")], 10, PLAIN) == "|a  |bb  |"
    assert axis([(0, "1 min"), (6, "1 h")], 10, PLAIN) == "|1 min|1 h"
    assert axis([], 3, PLAIN) == "   "


@settings(max_examples=60)
@given(
    ticks=st.lists(st.tuples(st.integers(0, 80), st.sampled_from(["1 s", "10 min", "10-03"]))).map(sorted),
    width=st.integers(1, 80),
)
def test_an_axis_is_as_wide_as_requested(ticks: list[tuple[int, str]], width: int) -> None:
    line = axis(ticks, width, BLOCKS)
    assert len(line) == width
    marks = [i for i, sign in enumerate(line) if sign == BLOCKS.edge]
    assert set(marks) <= {column for column, _ in ticks}


def test_a_range_of_durations_is_round() -> None:
    assert decades(20, 90) == (10.0, 120.0, [(10.0, "10 s"), (60.0, "1 min")])
    assert decades(60, 60) == (50.0, 60.0, [(60.0, "1 min")])
    assert decades(0.02, 0.5)[:2] == (0.01, 0.5)
    start, end, ticks = decades(3600, 40 * 86400)
    assert (start, end) == (3000.0, 50 * 86400)
    assert [label for _, label in ticks] == ["1 h", "10 h", "1 d", "10 d"]


@settings(max_examples=60)
@given(times=st.lists(st.floats(1e-280, 1e300), min_size=1, max_size=5))
def test_a_range_holds_its_durations(times: list[float]) -> None:
    start, end, ticks = decades(min(times), max(times))
    assert 0 < start < min(times)
    assert end >= max(times)
    values = [value for value, _ in ticks]
    assert values == sorted(values)
    assert all(start <= value <= end for value in values)


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_times_to_mark() -> None:
    week = time_ticks(seconds("2017-10-02 07:00"), seconds("2017-10-09 07:00"), 70, calendar=True)
    assert week[0] == (7, "10-03")
    assert [label for _, label in week] == [f"10-{day:02}" for day in range(3, 10)]
    night = time_ticks(seconds("2017-10-02 22:30"), seconds("2017-10-03 02:30"), 40, calendar=True)
    assert [label for _, label in night] == ["23:00", "10-03", "01:00", "02:00"]
    years = time_ticks(seconds("2015-01-01"), seconds("2018-01-01"), 60, calendar=True)
    assert all(len(label) == 10 for _, label in years)
    assert [label for _, label in time_ticks(0, 7200, 50, calendar=False)] == ["0 min", "30 min", "60 min", "90 min"]


@settings(max_examples=80)
@given(low=st.floats(-1e300, 1e300), span=st.floats(1e-9, 1e300), width=st.integers(1, 150), calendar=st.booleans())
def test_times_to_mark_are_few_and_lie_within(low: float, span: float, width: int, calendar: bool) -> None:
    if low + span <= low:
        return
    ticks = time_ticks(low, low + span, width, calendar=calendar)
    assert all(0 <= column <= width for column, _ in ticks)
    assert len(ticks) <= width + 1


def test_states_over_time() -> None:
    assert phases([(0, 5, "-"), (5, 9, "#")], 0, 10, 10) == "-----#### "
    # a short one takes a whole character, and the later one goes first
    assert phases([(0, 9.99, "-"), (9.99, 10, "#")], 0, 10, 5) == "----#"
    assert phases([(10, 10, "#")], 0, 10, 4) == "   #"
