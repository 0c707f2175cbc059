"""Charts as files: their width, fonts, colours in greyscale, and data."""

from __future__ import annotations

import re
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from PIL import Image

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import note
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.reports.charts import paper
from gpuctl.reports.drawables import of_analysis
from gpuctl.reports.figures import called

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.reports.charts.paper import Drawable


@pytest.fixture(scope="module")
def result() -> Analysis:
    """Waits of two sizes of jobs."""
    frame = pl.DataFrame(
        {"size": ["1", "8"] * 40, "wait_s": [float(n) for n in range(80)], "pct": [100.0 * n / 79 for n in range(80)]}
    )
    columns = (Column("size", "-", "Size."), Column("wait_s", "s", "Wait."), Column("pct", "%", "Share."))
    table = ResultTable("waits", "queueing", "Waits", "", note(""), (), columns, frame, charts=(CHART,))
    return Analysis(note("c"), (table,), (("queueing", "Queueing"),), (), {}, "test")


CHART = "cdf name=chart-waits x=wait_s series=size y=pct scale=minutes title=Waits"


def chart(result: Analysis) -> Drawable:
    return of_analysis(result)[0]


@pytest.mark.parametrize(("style", "pixels"), [("paper", 1020), ("wide", 2100)])
def test_png_has_the_width_of_its_style(result: Analysis, tmp_path: Path, style: paper.StyleName, pixels: int) -> None:
    path, data = paper.write_figure(chart(result), tmp_path / "w.png", style=style)
    with Image.open(path) as image:
        assert abs(image.width - pixels) <= 1
        shades = np.asarray(image.convert("L"))
    assert (shades[:, -1] > 250).all(), "nothing is cut at the right edge"
    rows = pl.read_csv(data)
    assert rows.columns == ["size", "wait_s", "pct"]
    assert rows.height == 80


def test_pdf_embeds_its_fonts_and_has_no_date(result: Analysis) -> None:
    (first,), (again,) = (paper.drawn(chart(result), ("pdf",), "paper") for _ in range(2))
    assert first == again
    text = first + b"".join(_inflated(first))
    assert b"/FontFile2" in text
    assert b"/Type3" not in text
    [box] = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", first)
    assert abs(float(box[0]) - 3.4 * 72) < 0.5


def test_svg_has_no_sentinel_and_no_title(result: Analysis) -> None:
    text = paper.as_svg(chart(result), "paper")
    assert not re.search("#0[1a4]0[b258]0[0-9a-f]", text)
    assert paper.COLOURS[0] in text
    assert "Waits" not in text


def test_neighbouring_colours_differ_in_greyscale() -> None:
    shades = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b in (_rgb(each) for each in paper.COLOURS)]
    assert all(abs(one - other) > 40 for one, other in pairwise(shades))


def test_other_endings_are_errors(result: Analysis, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected a name that ends in \.svg, \.pdf, \.png"):
        paper.write_figure(chart(result), tmp_path / "w.gif")
    assert called("chart-wait-cdf", "page").kind == "cdf"


def _inflated(data: bytes) -> list[bytes]:
    found = []
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL):
        try:
            found.append(zlib.decompress(stream))
        except zlib.error:
            continue
    return found


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
