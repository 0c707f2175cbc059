"""Small tables on narrow terminals: whole columns are left out, no word of the first one is broken."""

from __future__ import annotations

import pytest

from gpuctl.cli.common import _fitting

COLUMNS = ("name", "preempts", "from", "title")
ROWS = [("conservative", "no", "built in", "every waiting job has a reservation by time limits, which none delays")]


@pytest.mark.parametrize(
    ("width", "shown"),
    [(120, [0, 1, 2, 3]), (69, [0, 1, 2, 3]), (68, [0, 1, 3]), (58, [0, 1, 3]), (57, [0, 3]), (20, [0, 3])],
)
def test_columns_go_from_the_last_for_the_one_that_is_read(width: int, shown: list[int]) -> None:
    assert _fitting(COLUMNS, ROWS, "title", width) == shown


def test_a_short_text_needs_no_more_room_than_it_has() -> None:
    assert _fitting(COLUMNS, [("fifo", "no", "built in", "in order")], "title", 38) == [0, 1, 2, 3]
