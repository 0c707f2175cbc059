"""Charts as files for papers and slides: SVG, PDF and PNG without a title, fonts embedded, legible in greyscale."""

from __future__ import annotations

import io
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from gpuctl.core.errors import UsageError
from gpuctl.core.file_io import write_atomically
from gpuctl.core.whole_imports import whole_imports
from gpuctl.reports.charts.svg import FAINT, INK, PAPER, SERIES, drawing_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    import polars as pl
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    from gpuctl.reports.charts.chart import Key, Sketch

StyleName = Literal["paper", "wide"]
ENDINGS = (".svg", ".pdf", ".png")
COLOURS = ("#08306b", "#fdae6b", "#238b45", "#d4b9da", "#8c2d04", "#6baed6", "#4d4d4d", "#c7e9c0")
"""Colours of series. Lightness alternates, so that neighbours differ in greyscale; lines also have dash patterns."""
_REAL = {INK: "#000000", FAINT: "#d9d9d9", PAPER: "#ffffff"} | dict(zip(SERIES, COLOURS, strict=True))
_DPI = 300
_GAP, _MARGIN = 0.06, 0.02
"""Inches above the legend, and around all."""
_MOST_COLUMNS = 4
_PAD = 6.5
"""Points between an axis and its labels, before scaling."""
_BELOW = 5.0
"""User units by which titles below the axes move down."""
_PROPERTIES = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


@dataclass(frozen=True)
class Drawable:
    """A chart that can be drawn.

    Attributes:
        name: of its files, without an ending.
        title: its heading, which is not part of the drawing.
        table: the table that it is drawn from.
        rows: what it draws.
        sketch: draws it, inside `gpuctl.reports.charts.svg.drawing_settings`.
    """

    name: str
    title: str
    table: str
    rows: pl.DataFrame
    sketch: Callable[[], Sketch]


@dataclass(frozen=True)
class Style:
    """A size of figures.

    Attributes:
        inches: width of the file.
        size: of type before it is scaled to that width, in user units; 7 points or more in the file.
    """

    inches: float
    size: float


STYLES: dict[StyleName, Style] = {"paper": Style(3.4, 16.0), "wide": Style(7.0, 12.0)}
"""``paper``: a column of a two-column paper; ``wide``: both columns."""


def write_figure(
    drawable: Drawable, path: Path, *, style: StyleName = "paper", data: bool = True
) -> tuple[Path, ...]:  # fmt: skip
    """Write a chart, and its rows as CSV beside it.

    Args:
        drawable: the chart.
        path: its ending is the format: `ENDINGS`.
        style: its size.
        data: whether to write the CSV.

    Returns:
        the files written.

    Raises:
        UsageError: another ending or style.
        OSError: a file cannot be written.
    """
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"{path}: expected a name that ends in {', '.join(ENDINGS)}", hint=f"{path.stem}.pdf")
    (content,) = drawn(drawable, (path.suffix.lower()[1:],), style)
    write_atomically(path, partial(_put, content))
    return (path, _write_rows(drawable, path.with_suffix(".csv"))) if data else (path,)


def write_all(drawables: Iterable[Drawable], directory: Path, style: StyleName = "paper") -> tuple[Path, ...]:
    """Write charts as ``NAME.svg``, ``NAME.pdf``, ``NAME.png`` and their rows as ``NAME.csv``.

    Args:
        drawables: the charts.
        directory: made if it is absent; other files in it stay.
        style: size of the figures.

    Raises:
        UsageError: another style.
        OSError: a file cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for drawable in drawables:
        contents = drawn(drawable, tuple(ending[1:] for ending in ENDINGS), style)
        for ending, content in zip(ENDINGS, contents, strict=True):
            written.append(directory / f"{drawable.name}{ending}")
            write_atomically(written[-1], partial(_put, content))
        written.append(_write_rows(drawable, directory / f"{drawable.name}.csv"))
    return tuple(written)


def _write_rows(drawable: Drawable, path: Path) -> Path:
    write_atomically(path, partial(_put, drawable.rows.write_csv().encode()))
    return path


def as_svg(drawable: Drawable, style: StyleName) -> str:
    """Return a chart as an SVG document."""
    (content,) = drawn(drawable, ("svg",), style)
    return content.decode()


def drawn(drawable: Drawable, kinds: Sequence[str], style: StyleName) -> list[bytes]:
    """Return a chart as files of some kinds; the same result gives the same bytes.

    Raises:
        UsageError: another style.
    """
    undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    files = [io.BytesIO() for _ in kinds]
    with composed(drawable, style) as (figure, box):
        for kind, file in zip(kinds, files, strict=True):
            figure.savefig(file, format=kind, bbox_inches=box, dpi=_DPI, metadata=undated[kind], facecolor="white")
    return [file.getvalue() for file in files]


@contextmanager
def composed(drawable: Drawable, style: StyleName) -> Iterator[tuple[Figure, Bbox]]:
    """Return a chart in its final size, with its legend, and the part of the figure that is shown, in inches.

    Raises:
        UsageError: another style.
    """
    with whole_imports():
        from matplotlib import rc_context
        from matplotlib.transforms import Bbox

    if style not in STYLES:
        raise UsageError(f"style={style!r}: no such style", hint=f"known: {', '.join(STYLES)}")
    size = STYLES[style]
    fonts: dict[Any, Any] = {"font.size": size.size, "xtick.labelsize": size.size, "ytick.labelsize": size.size,
                             "legend.fontsize": size.size, "pdf.fonttype": 42, "svg.fonttype": "path"}  # fmt: skip
    with drawing_settings(), rc_context(fonts):
        sketch = drawable.sketch()
        figure = sketch.figure
        around = figure.get_tightbbox()
        scale = size.inches / (max(around.x1, figure.get_size_inches()[0]) - min(around.x0, 0.0))
        _shrink(figure, scale, size.size)
        _lower_titles(figure, _BELOW * scale / 72)
        _add_legend(figure, sketch.keys, size.size * scale, size.inches)
        for artist in figure.findobj():
            _recolour(artist)
        # the whole width, and no more height than there is: the same width in every file of a paper
        around, left = figure.get_tightbbox(), min(0.0, around.x0 * scale)
        yield figure, Bbox([[left, around.y0 - _MARGIN], [left + size.inches, around.y1 + _MARGIN]])


def _shrink(figure: Figure, scale: float, size: float) -> None:
    """Shrink a drawing: places are shares of the figure, but type, lines and distances of labels are in points."""
    from matplotlib.text import Text

    width, height = figure.get_size_inches()
    figure.set_size_inches(width * scale, height * scale)
    for artist in figure.findobj():
        if isinstance(artist, Text):
            artist.set_fontsize(size * scale)
        elif hasattr(artist, "get_linewidth") and hasattr(artist, "set_linewidth"):
            lines = artist.get_linewidth()
            artist.set_linewidth([each * scale for each in lines] if hasattr(lines, "__iter__") else lines * scale)
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_tick_params(pad=_PAD * scale, labelsize=size * scale)


def _lower_titles(figure: Figure, inches: float) -> None:
    """Move titles below the axes further down: type is larger than on a page, distances are the same."""
    if not figure.axes:
        return
    lowest = min(float(axes.get_position().y0) for axes in figure.axes)
    for text in figure.texts:
        x, y = text.get_position()
        if y < lowest:
            text.set_position((x, y - inches / float(figure.get_size_inches()[1])))


def _add_legend(figure: Figure, keys: Sequence[Key], size: float, inches: float) -> None:
    """Draw a legend below a figure, in as many columns as fit the width."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if len(keys) < 2:
        return
    marks: list[Artist] = []
    for key in keys:
        colour = SERIES[key.s - 1] if key.s else INK
        if key.mark in {"line", "tick"}:
            dashes: Any = (0, key.dash) if key.dash else "solid"
            marks.append(Line2D([], [], color=colour, linestyle=dashes, linewidth=1.2))
        else:
            marks.append(Patch(facecolor=colour, alpha=0.4 if key.mark == "area" else None, linewidth=0))
    lowest = figure.get_tightbbox().y0
    for columns in range(min(len(keys), _MOST_COLUMNS), 0, -1):
        legend = figure.legend(
            marks, [key.label for key in keys], loc="upper left", ncols=columns, frameon=False, borderaxespad=0,
            bbox_to_anchor=(0, (lowest - _GAP) / float(figure.get_size_inches()[1])), borderpad=0, handlelength=2.2,
            handletextpad=0.5, columnspacing=1.2, labelspacing=0.35, fontsize=size,
        )  # fmt: skip
        if columns == 1 or legend.get_window_extent().width / figure.dpi <= inches:
            return
        legend.remove()


def _recolour(artist: Artist) -> None:
    """Put real colours in the place of the sentinels."""
    from matplotlib.colors import to_hex, to_rgba_array

    for name in _PROPERTIES:
        get, put = getattr(artist, f"get_{name}", None), getattr(artist, f"set_{name}", None)
        if get is None or put is None:
            continue
        try:
            colours = to_rgba_array(get())
        except (TypeError, ValueError):
            continue
        new = [_REAL.get(to_hex(each)) for each in colours]
        if any(new):
            whole = [(*to_rgba_array(real)[0][:3], each[3]) if real else tuple(each)
                     for real, each in zip(new, colours, strict=True)]  # fmt: skip
            put(whole[0] if len(whole) == 1 else whole)


def _put(data: bytes, file: BinaryIO) -> None:
    file.write(data)
