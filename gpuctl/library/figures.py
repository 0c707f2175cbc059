"""Charts of results as files for papers and slides: SVG, PDF and PNG, with the data beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gpuctl.core.errors import UsageError
from gpuctl.core.suggestions import meant
from gpuctl.library.arguments import path_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from gpuctl.reports.charts.paper import Drawable


@dataclass(frozen=True)
class Figure:
    """One chart of a result; in a notebook it shows itself.

    Attributes:
        name: of the chart.
        title: its heading, which is not part of the drawing.
    """

    name: str
    title: str
    _drawable: Drawable = field(repr=False)

    def save(
        self, path: str | PathLike[str], *, style: Literal["paper", "wide"] = "paper", data: bool = True
    ) -> tuple[Path, ...]:
        """Write the chart in the format that the ending of `path` names (SVG, PDF, PNG), and its data as CSV.

        Args:
            path: the file; a CSV of the same name is written next to it.
            style: ``paper`` for a column of a paper (3.4 inches), ``wide`` for the width of a page (7 inches).
            data: whether to write the CSV.

        Returns:
            the files written.

        Raises:
            UsageError: another ending or style, or a file cannot be written.

        Example:
            >>> import gpuctl
            >>> figure = gpuctl.analyze("sample_data/philly").figure("wait-cdf")
            >>> [path.name for path in figure.save("waits.pdf")]
            ['waits.pdf', 'waits.csv']
        """
        from gpuctl.reports.charts.paper import write_figure

        return write_figure(self._drawable, path_of(path), style=style, data=data)

    def _repr_svg_(self) -> str:
        from gpuctl.reports.charts.paper import as_svg

        return as_svg(self._drawable, "wide")


def figure_of(drawables: Sequence[Drawable], name: str, missing: Mapping[str, str] | None = None) -> Figure:
    """Return the chart of that name, or the first chart of the table of that name.

    Args:
        drawables: the charts.
        name: as asked for.
        missing: why other charts cannot be drawn, by name.

    Raises:
        UsageError: there is none, or it cannot be drawn.
    """
    wanted = str(name).removeprefix("chart-")
    found = next((each for each in drawables if each.name == wanted), None)
    found = found or next((each for each in drawables if each.table == wanted), None)
    if found is None:
        why = (missing or {}).get(wanted)
        names = [each.name for each in drawables]
        if why is not None:
            raise UsageError(f"chart {wanted}: {why}", hint=f"charts of this result: {', '.join(names) or 'none'}")
        raise UsageError(f"this result has no chart {name!r}", hint=meant(wanted, names))
    return Figure(found.name, found.title, found)
