"""Reports: several results compared, checked against conditions, on one page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError
from gpuctl.library.arguments import is_path, listed, path_of
from gpuctl.library.result import Result

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from gpuctl.core.results import Analysis
    from gpuctl.library.arguments import PathOrText
    from gpuctl.reports.charts.paper import Drawable
    from gpuctl.reports.report import Part


class Report(Result):
    """Several results side by side: tables ``checks``, ``standout`` and ``metrics``.

    Example:
        >>> import gpuctl
        >>> runs = {name: gpuctl.replay("sample_data/jobs.csv", "4x8", [name]) for name in ("fifo", "srtf")}
        >>> report = gpuctl.report(runs, fail_if=["replay.mean_wait_h > 100"])
        >>> report.failed
        ()
        >>> "jct-by-result" in report.figures
        True
        >>> report.to_html("report.html")
        >>> report.to_markdown("report.md")
        >>> report.to_junit("checks.xml")
    """

    def __init__(self, parts: tuple[Part, ...], summary: Analysis) -> None:
        from gpuctl.reports.screens.report import screen

        super().__init__(summary, partial(screen, parts))
        self._parts = parts

    @property
    def failed(self) -> tuple[str, ...]:
        """A sentence for each condition that is true; empty if every check passed."""
        from gpuctl.reports.report import failed

        return tuple(failed(self._analysis))

    def _drawables(self) -> tuple[Drawable, ...]:
        from gpuctl.reports.drawables import of_report

        return of_report(self._parts)

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write one self-contained page of all results.

        Raises:
            UsageError: the file cannot be written.
        """
        from gpuctl.reports.html import render_report, write_page

        write_page(render_report(self._parts, self._analysis), path_of(path))

    def to_markdown(self, path: str | PathLike[str]) -> None:
        """Write a short summary for a pull request.

        Raises:
            UsageError: the file cannot be written.
        """
        from gpuctl.reports.ci import write_markdown

        write_markdown(self._analysis, path_of(path))

    def to_junit(self, path: str | PathLike[str]) -> None:
        """Write the checks as JUnit XML.

        Raises:
            UsageError: the file cannot be written.
        """
        from gpuctl.reports.ci import write_junit

        write_junit(self._analysis, path_of(path))


def report(
    results: Mapping[str, Result | PathOrText] | Sequence[Result | PathOrText],
    *,
    fail_if: Sequence[str] = (),
    baseline: Sequence[Result | PathOrText] = (),
) -> Report:
    """Put results side by side, list what stands out, and check metrics against conditions.

    Args:
        results: results, or files written with `Result.to_json` or ``--json``; a mapping gives them names.
        fail_if: conditions that must not hold, as for ``gpuctl report --fail-if``.
        baseline: earlier results to compare with.

    Raises:
        UsageError: nothing to report, or a condition makes no sense.
        InputError: a file is no result.

    Example:
        >>> import gpuctl
        >>> result = gpuctl.analyze("sample_data/philly", sections=["queueing"])
        >>> gpuctl.report({"philly": result}, fail_if=["queueing.p95_wait_h > 100"]).failed
        ()
    """
    from gpuctl.reports.conditions import parse
    from gpuctl.reports.report import earlier, labelled, summarize

    if is_path(results) or isinstance(results, Result) or not isinstance(results, Iterable):
        raise UsageError("results: expected a list or a mapping", hint="gpuctl.report([result])")
    given = [*results.values()] if isinstance(results, Mapping) else [*results]
    names: list[str | None] = [*results] if isinstance(results, Mapping) else [None] * len(given)
    if not given:
        raise UsageError("nothing to report", hint="give at least one result")
    parts = labelled([_analysis(each) for each in given], names)
    before = earlier([_analysis(each) for each in listed("baseline", baseline)]) if baseline else None
    summary = summarize(parts, [parse(text) for text in listed("fail_if", fail_if)], before, "gpuctl.report")
    return Report(parts, summary)


def _analysis(given: Result | PathOrText) -> Analysis:
    from gpuctl.services.report_inputs import read_result

    return given._analysis if isinstance(given, Result) else read_result(path_of(given, "results"))
