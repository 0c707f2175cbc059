"""Converts a matplotlib figure to an SVG fragment for a page: themed by CSS, small, reproducible to the byte.

Figures are drawn in sentinel colours, which become ``currentColor`` and CSS variables here. Presentation attributes
replace inline styles, so that the page's security policy need not allow any.
"""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ET
from contextlib import contextmanager
from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

INK = "#010203"
FAINT = "#040506"
PAPER = "#070809"
SERIES = ("#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04", "#0a0b05", "#0a0b06", "#0a0b07", "#0a0b08")
"""Sentinels for the colours of a figure."""

_COLOURS = {INK: "currentColor", FAINT: "var(--grid)", PAPER: "var(--paper)"} | {
    sentinel: f"var(--s{number})" for number, sentinel in enumerate(SERIES, 1)
}
_RC: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gpuctl",
    "path.simplify": False,
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.linewidth": 1.0,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.unicode_minus": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 12,
    "ytick.labelsize": 12,
    "xtick.bottom": False,
    "ytick.left": False,
    "xtick.major.pad": 7,
    "ytick.major.pad": 6,
    "grid.color": FAINT,
    "grid.linewidth": 1.0,
    "figure.facecolor": "none",
    "lines.solid_joinstyle": "round",
}
_UNSTYLED = {
    "font", "font-size", "font-family", "font-style", "font-stretch", "font-variant", "stroke-miterlimit",
    "stroke-linecap", "stroke-linejoin",
}  # fmt: skip
_ATTRIBUTES = {
    "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "transform", "clip-path", "points"
}  # fmt: skip
_NUMBER = re.compile(r"-?(?<!\d)\d++\.\d++(?:e-?\d++)?")
_COMMAND = re.compile(r"([A-Za-z])([^A-Za-z]*)")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_OURS = re.compile(r"([akpc])([0-9]+)")
_USUAL = {("text-anchor", "start"), ("fill", "none"), ("stroke-dashoffset", "0")}
"""Styles that the page's style sheet sets for all figures, or that are defaults."""


@contextmanager
def drawing_settings() -> Iterator[None]:
    """Set up matplotlib for these figures, independent of the user's settings, and restore those afterwards."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        # A name in a script that DejaVu lacks: the browser has its own fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in SVG user units; call it and draw inside `drawing_settings`."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width / 72, height / 72), dpi=72)


def to_svg(figure: Figure, prefix: str, title: str, description: str) -> str:
    """Return a figure as an ``<svg>`` element for an HTML page.

    Args:
        figure: drawn in the sentinel colours of this module, inside `drawing_settings`.
        prefix: unique in the page; every id in the fragment starts with it.
        title: name of the figure for screen readers.
        description: description of the figure.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    out = io.BytesIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    FigureCanvasSVG(figure).print_svg(out, metadata=nothing)  # type: ignore[no-untyped-call]
    root = ET.fromstring(out.getvalue())  # noqa: S314 -- written by matplotlib a line above
    ids = {old: f"{prefix}-{n}" for n, old in enumerate(_REFERENCE.findall(out.getvalue().decode()), 1)}
    _, _, width, height = root.attrib["viewBox"].split()
    body = "".join(_serialized(child, ids) for child in root)
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {_rounded(width)} {_rounded(height)}" tabindex="0"'
        f' aria-labelledby="{prefix}-title {prefix}-desc" id="{prefix}">'
        f'<title id="{prefix}-title">{escape(title)}</title><desc id="{prefix}-desc">{escape(description)}</desc>'
        f"{body}</svg>"
    )


def _serialized(element: ET.Element, ids: dict[str, str]) -> str:
    tag = element.tag.rpartition("}")[2]
    if tag in {"metadata", "style"}:
        return ""
    if tag in {"use", "image"}:
        raise ValueError(f"a figure holds <{tag}>: draw lines, fills and text, no markers and no images")
    if tag == "path" and element.get("style", "").strip() == "fill: none":
        return ""  # the background of a pair of axes
    inner = escape((element.text or "").strip(), quote=False)
    inner += "".join(_serialized(child, ids) for child in element)
    attributes = "".join(f' {k}="{escape(v)}"' for k, v in _attributes(tag, element, ids))
    if tag in {"g", "defs"} and (not inner or (tag == "g" and not attributes)):
        return inner
    return f"<{tag}{attributes}>{inner}</{tag}>" if inner else f"<{tag}{attributes}/>"


def _attributes(tag: str, element: ET.Element, ids: dict[str, str]) -> Iterator[tuple[str, str]]:
    given = dict(element.attrib)
    if given.get("id") in ids:
        yield "id", ids[given["id"]]
    own = _OURS.fullmatch(given.get("id", "")) if tag == "g" else None
    if own:
        yield f"data-{own[1]}", own[2]
    # a grid line ends where its axes do
    if "stroke: " + FAINT in given.get("style", ""):
        given.pop("clip-path", None)
    for name, value in given.items():
        if name not in _ATTRIBUTES or "rotate(-0 " in value:
            continue
        if name == "d":
            yield name, _path(value)
        else:
            yield name, _rounded(_REFERENCE.sub(lambda m: f"url(#{ids[m[1]]})", value))
    for declaration in filter(None, given.get("style", "").split(";")):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        number = _COLOURS.get(value, _rounded(value))
        if (
            name not in _UNSTYLED
            and (name, number) not in _USUAL
            and (tag, name, number) != ("text", "fill", "currentColor")
        ):
            yield name, number


def _path(data: str) -> str:
    """Return a path's commands, each in the shorter of absolute and relative form."""
    pieces: list[str] = []
    x, y = Decimal(0), Decimal(0)
    for command, numbers in _COMMAND.findall(data):
        at = [Decimal(number) for number in _rounded(numbers).split()]
        if command != "L" or (at[0] != x and at[1] != y):
            pieces.append(_shorter(command, at, x, y) if command == "L" else command + " ".join(map(str, at)))
        elif at[1] != y:
            pieces.append(min(f"V{at[1]}", f"v{at[1] - y}", key=len))
        elif at[0] != x:
            pieces.append(min(f"H{at[0]}", f"h{at[0] - x}", key=len))
        if at:
            x, y = at[-2:]
    return "".join(pieces)


def _shorter(command: str, at: list[Decimal], x: Decimal, y: Decimal) -> str:
    return min(f"{command}{at[0]} {at[1]}", f"{command.lower()}{at[0] - x} {at[1] - y}", key=len)


def _rounded(text: str) -> str:
    return _NUMBER.sub(_one_decimal, text)


def _one_decimal(match: re.Match[str]) -> str:
    text = f"{float(match[0]):.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
