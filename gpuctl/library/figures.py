"""Charts of results as files for papers and slides: SVG, PDF and PNG, with the data beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpuctl.core.errors import UsageError
from gpuctl.core.suggestions import meant

if TYPE_CHECKING:
    from os import PathLike

    from gpuctl.core.charts import Chart
    from gpuctl.core.results import Analysis


@dataclass(frozen=True)
class Figure:
    """One chart of a result; in a notebook it shows itself.

    Attributes:
        name: of the chart.
        title: its heading, which is not part of the drawing.
    """

    name: str
    title: str
    _analysis: Analysis
    _chart: Chart

    def save(
        self, path: str | PathLike[str], *, style: Literal["paper", "wide"] = "paper", data: bool = True
    ) -> tuple[Path, ...]:
        """Write the chart as SVG, PDF or PNG, by the ending of `path`, and its data as CSV beside it.

        Args:
            path: the file; a CSV of the same name is written next to it.
            style: ``paper`` for a column of a paper (3.4 inches), ``wide`` for the width of a page (7 inches).
            data: whether to write the CSV.

        Returns:
            the files written.

        Raises:
            UsageError: another ending.
            OSError: a file cannot be written.
        """
        from gpuctl.reports.charts.paper import write_figure

        return write_figure(self._analysis, self._chart, Path(path), style=style, data=data)

    def _repr_svg_(self) -> str:
        from gpuctl.reports.charts.paper import as_svg

        return as_svg(self._analysis, self._chart, "wide")


def figure_of(analysis: Analysis, name: str) -> Figure:
    """Return the chart of that name, or the first chart of the table of that name.

    Raises:
        UsageError: there is none, or it cannot be drawn.
    """
    from gpuctl.reports.charts.paper import figure_name
    from gpuctl.reports.charts.registry import rows_of
    from gpuctl.reports.figures import on_page

    charts = on_page(analysis)
    found = next((each for each in charts if name in {each.name, figure_name(each)}), None)
    found = found or next((each for each in charts if each.table == name), None)
    if found is None:
        raise UsageError(f"this result has no chart {name!r}", hint=meant(name, [figure_name(each) for each in charts]))
    rows, missing = rows_of(found, analysis.table(found.table))
    if rows is None:
        raise UsageError(f"chart {found.name}: {missing}")
    return Figure(figure_name(found), found.title, analysis, found)
