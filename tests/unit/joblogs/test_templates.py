from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpuctl.joblogs.templates import cluster


def test_lines_that_differ_in_what_varies_are_one_template() -> None:
    lines = [
        "solver diverged at iteration 12 of /data/a/x.bin",
        "2026-11-22 01:02:03 ERROR solver diverged at iteration 99 of /data/b.bin",
        "worker alice lost her widget",
        "[rank3]: solver diverged at iteration 7 of ./c",
        "worker bob lost her widget",
    ]
    found = cluster(lines)
    assert [(c.template, c.members) for c in found] == [
        ("solver diverged at iteration <*> of <*>", [0, 1, 3]),
        ("worker <*> lost her widget", [2, 4]),
    ]


def test_other_words_are_another_template() -> None:
    assert len(cluster(["cannot open the file now", "cannot reach our printer here"])) == 2


@given(st.lists(st.text(alphabet="ab /0:.x", max_size=30), max_size=40))
def test_every_line_is_in_exactly_one_cluster(lines: list[str]) -> None:
    found = cluster(lines)
    assert sorted(place for one in found for place in one.members) == list(range(len(lines)))
    assert found == cluster(lines)
