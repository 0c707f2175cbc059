"""Reports: several results compared, checked against conditions, on one page."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError
from gpuctl.library.result import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.results import Analysis
    from gpuctl.library.traces import PathOrText
    from gpuctl.reports.report import Part


class Report(Result):
    """Several results side by side: tables ``checks``, ``standout`` and ``metrics``."""

    def __init__(self, parts: tuple[Part, ...], summary: Analysis) -> None:
        super().__init__(summary)
        self._parts = parts

    @property
    def failed(self) -> tuple[str, ...]:
        """A sentence for each condition that is true; empty if every check passed."""
        from gpuctl.reports.report import failed

        return tuple(failed(self._analysis))

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write one self-contained page of all results.

        Raises:
            OSError: the file cannot be written.
        """
        from gpuctl.reports.html import render_report, write_page

        write_page(render_report(self._parts, self._analysis), Path(path))

    def to_markdown(self, path: str | PathLike[str]) -> None:
        """Write a short summary for a pull request.

        Raises:
            OSError: the file cannot be written.
        """
        from gpuctl.reports.ci import write_markdown

        write_markdown(self._analysis, Path(path))

    def to_junit(self, path: str | PathLike[str]) -> None:
        """Write the checks as JUnit XML.

        Raises:
            OSError: the file cannot be written.
        """
        from gpuctl.reports.ci import write_junit

        write_junit(self._analysis, Path(path))

    def __str__(self) -> str:
        import io

        from gpuctl.reports.screens.draw import print_screen
        from gpuctl.reports.screens.report import screen

        text = io.StringIO()
        print_screen(screen(self._parts, self._analysis), width=100, color=False, file=text)
        return text.getvalue().rstrip("\n")


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

    if isinstance(results, (str, PathLike, Result)):
        raise UsageError("results: expected a list or a mapping", hint="gpuctl.report([result])")
    names: list[str | None] = [*results] if isinstance(results, Mapping) else [None] * len(results)
    given = [*results.values()] if isinstance(results, Mapping) else [*results]
    if not given:
        raise UsageError("nothing to report", hint="give at least one result")
    parts = labelled([_analysis(each) for each in given], names)
    before = earlier([_analysis(each) for each in baseline]) if baseline else None
    summary = summarize(parts, [parse(text) for text in fail_if], before, "gpuctl.report")
    return Report(parts, summary)


def _analysis(given: Result | PathOrText) -> Analysis:
    from gpuctl.services.report_inputs import read_result

    return given._analysis if isinstance(given, Result) else read_result(Path(given))
