"""Gantt charts: no two jobs on one GPU, all of it in the drawing, and the letters of a terminal."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.reports.charts.gantt import Bar, _places
from gpuctl.reports.charts.registry import Drawing, draw
from gpuctl.reports.charts.svg import drawing_settings
from gpuctl.reports.figures import REPLAYS, on
from gpuctl.reports.terminal.picture import draw as picture
from gpuctl.reports.terminal.text_graphics import PLAIN
from tests.unit.reports.fakes import HOSTILE, table

HEAD = (
    "policy", "node", "what", "job", "user", "queue", "gpus", "counted_gpus", "beside", "t_s", "t_end_s"
)  # fmt: skip
ROWS: list[tuple[Any, ...]] = [
    ("fifo", "s1", "node", None, None, None, 4, None, None, 0.0, 100.0),
    ("fifo", "s1", "job", "a", "ann", "q", 3, 3.0, None, -50.0, 40.0),
    ("fifo", "s1", "job", "b", "bob", "q", 1, 1.0, None, 0.0, 80.0),
    ("fifo", "s1", "job", "c", "ann", "q", 4, 2.0, None, 80.0, 300.0),
    ("fifo", "s2", "lent", None, None, None, 4, None, None, 0.0, 100.0),
    ("fifo", "s2", "loan", None, None, None, None, None, None, 50.0, 100.0),
    ("fifo", "s2", "job", "d", None, "q", 4, 4.0, None, 50.0, 100.0),
    ("fifo", "s2", "job", "e", None, "q", 2, 2.0, "d", 75.0, 100.0),
]


def made(rows: list[tuple[Any, ...]]) -> Drawing:
    frame = pl.DataFrame(rows, HEAD, orient="row", infer_schema_length=None).with_columns(
        ts=pl.lit(None, pl.Datetime("us", "UTC"))
    )
    [chart] = [c for c in on(REPLAYS, "page") if c.kind == "gantt"]
    with drawing_settings():
        return draw(chart, table("replay_gantt", "replay", frame))


def close(found: list[tuple[float, float]], wanted: list[tuple[float, float]]) -> bool:
    pairs = zip(found, wanted, strict=True)
    return all(abs(a - c) < 0.2 and abs(b - d) < 0.2 for (a, b), (c, d) in pairs)


def test_drawings_by_hand() -> None:
    data: Any = made(ROWS).data
    [(box, policy, nodes)] = data["panels"]
    assert (policy, [data["names"][k] for k, _, _ in nodes]) == ("fifo", ["s1", "s2"])
    bars = {data["names"][bar[3]]: bar for bar in data["bars"] if bar[3] >= 0}
    (_, top, tall), (_, below, _) = nodes
    heights = {
        job: [tuple(bar[12 + 2 * k : 14 + 2 * k]) for k in range((len(bar) - 12) // 2)] for job, bar in bars.items()
    }
    assert close(heights["a"], [(top, 0.75 * tall)])
    assert close(heights["b"], [(top + 0.75 * tall, 0.25 * tall)])
    assert close(heights["c"], [(top, tall)])
    # packed: the lower half of the lanes of its host
    assert close(heights["e"], [(below + 0.25 * tall, 0.25 * tall)])
    assert box[1] < top < below < box[1] + box[3]
    assert [bars["a"][9:11], bars["c"][9:11]] == [[-50, 40], [80, 300]]
    # users have colours of their own; the queue is one for all, and no way to tell bars apart
    assert [way for way, _ in data["ways"]] == ["job", "user"]
    assert bars["a"][11][1] == bars["c"][11][1] != bars["b"][11][1]
    assert bars["d"][11][1] == "5"


def test_hostile_names_are_text_and_remarks_state_what_marks_mean() -> None:
    rows = [tuple(HOSTILE[0] if cell == "a" else cell for cell in row) for row in ROWS]
    drawn = made(rows)
    assert "<script" not in drawn.svg
    said = " ".join(drawn.remarks)
    for mark in ("took turns", "packed", "on loan"):
        assert mark in said
    assert "down" not in said
    assert "took turns" not in " ".join(made([row for row in ROWS if row[3] != "c"]).remarks)
    assert re.search(r'data-c="\d\d"', drawn.svg)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 20), st.integers(1, 9)), max_size=12), st.integers(1, 8))
def test_no_two_jobs_on_one_lane_at_once(jobs: list[tuple[int, int, int]], gpus: int) -> None:
    bars = [Bar("job", "s", f"j{k}", "", "", "", g, g, t, t + d) for k, (g, t, d) in enumerate(jobs)]
    placed = list(_places(bars, gpus))
    assert len(placed) == len(bars)
    most = max((sum(b.gpus for b in bars if b.start <= a.start < b.end) for a in bars), default=0)
    for bar, tops in placed:
        assert abs(sum(b - a for a, b in tops) * max(gpus, most) - bar.gpus) < 1e-9
        assert all(0 <= a < b <= 1 for a, b in tops)
        for other, theirs in placed:
            if other is not bar and other.start < bar.end and bar.start < other.end:
                assert all(b <= c + 1e-12 or d <= a + 1e-12 for a, b in tops for c, d in theirs)


def test_letters_of_a_terminal() -> None:
    [chart] = [c for c in on(REPLAYS, "terminal") if c.kind == "gantt"]
    frame = pl.DataFrame(ROWS, HEAD, orient="row", infer_schema_length=None).with_columns(
        ts=pl.lit(None, pl.Datetime("us", "UTC"))
    )
    drawn = picture(chart, table("replay_gantt", "replay", frame), 26, PLAIN)
    assert drawn is not None
    assert drawn.lines[:3] == ("fifo", "  s1|aaaaaaaabbbbbbbbeeee|", "  s2|..........cccccccccc|")
    assert "a a, b b, c d, d e, e c; . nothing" in drawn.caption
    assert picture(chart, table("replay_gantt", "replay", frame), 12, PLAIN) is None
    assert picture(chart, table("replay_gantt", "replay", frame.drop("beside")), 80, PLAIN) is None
