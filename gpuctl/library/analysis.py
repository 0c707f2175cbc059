"""Analyses of a trace: tables, the explanation of one job, and why a program failed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from gpuctl.core.errors import InputError, UsageError
from gpuctl.library.arguments import (
    PathOrText,
    is_path,
    job_filter,
    listed,
    mapping,
    number,
    one_of,
    path_of,
    paths_of,
)
from gpuctl.library.result import Result, preformatted
from gpuctl.library.traces import LogReading, opened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from typing import Unpack

    from gpuctl.analyze.options import Options
    from gpuctl.core.job_explanation import Explanation
    from gpuctl.library.figures import Figure

ALL = "all"
Definition = Literal["gpuctl", "notebook"]
Duration = Literal["span", "sum", "last"]
Period = Literal["hour", "day", "week", "month", "quarter"]


def analyze(
    source: object,
    tables: Sequence[str] | Literal["all"] | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    *,
    sections: Sequence[str] = (),
    parameters: Mapping[str, str | int | float] | None = None,
    definition: Definition = "gpuctl",
    duration: Duration | None = None,
    by: Period | None = None,
    quotas: PathOrText | Mapping[str, float] | None = None,
    racks: PathOrText | Mapping[str, str] | None = None,
    borrow_below: float | None = None,
    prices: PathOrText | None = None,
    period_timezone: str | None = None,
    forgive: Sequence[str] = (),
    idle_below: float = 5.0,
    reference: str | None = None,
    learned: bool = True,
    **reading: Unpack[LogReading],
) -> Result:
    """Report how busy the cluster was, how long jobs waited and why, and how well they used their GPUs.

    Args:
        source: a `Trace`, or anything that `gpuctl.open` takes.
        tables: names of tables, as ``gpuctl analyses`` lists them, or paths of your own ``.sql`` files; ``"all"`` for
            every table, those with a row per job included. Default: the tables of the HTML page.
        where: only jobs that match: ``{"gpus": "8..", "user": "u1", "since": "2024-01-01"}``. Keys are user, queue,
            account, state, gpus, since and until; lists of names match any of them. A time without a zone is on the
            clock of the log.
        sections: only the tables of these sections, besides `tables`.
        parameters: values of parameters that your own ``.sql`` files declare.
        definition: whose definitions of waits and run times: gpuctl's or the published notebook's.
        duration: a job's run time: last end - first start, the sum of its attempts, or its last attempt.
        by: periods of series over time and of charges.
        quotas: GPUs per queue, or a CSV of them (vc,quota_gpus). Default: inferred.
        racks: rack per node, or a CSV of them (node,rack). Default: from the logs, else inferred.
        borrow_below: share of GPUs in use up to which a queue may exceed its quota. Default: inferred.
        prices: CSV of prices per GPU-hour.
        period_timezone: zone in which days, weeks, months and quarters begin. Default: that of the log.
        forgive: states of attempts that are not charged.
        idle_below: mean GPU utilization in per cent below which a job counts as idle.
        reference: published values to compare with.
        learned: classify logs that no signature explains with the trained model.
        reading: how logs are read, if `source` is not open yet.

    Raises:
        UsageError: no such table, section, cluster or name to filter by.
        InputError: a file is not what it should be.
        StoreError: the store is in use by a writer, or damaged.

    Example:
        >>> import gpuctl
        >>> result = gpuctl.analyze("sample_data/philly", tables=["status"])
        >>> result.table("status")["jobs"].to_list()
        [1341, 332, 289, 1962]
    """
    from gpuctl.analyze import registry
    from gpuctl.analyze.options import Options
    from gpuctl.analyze.run import analyze as run
    from gpuctl.library.progress import NotebookProgress
    from gpuctl.reports.screens.analysis import screen
    from gpuctl.services.options import Charging

    every = isinstance(tables, str) and tables == ALL
    wanted = [] if tables is None or every else [_table_name(name) for name in listed("tables", tables)]
    sections = listed("sections", sections)
    one_of("definition", definition, get_args(Definition))
    one_of("duration", duration, (None, *get_args(Duration)))
    one_of("by", by, (None, *get_args(Period)))
    idle_below = number("idle_below", idle_below, 0, 100)
    charging = Charging(
        path_of(prices, "prices") if prices is not None else None, period_timezone, listed("forgive", forgive)
    )
    names, own = registry.with_files(wanted)
    registry.check_names(sections=sections, tables=names, reference=reference, own=own)
    with opened(source, reading) as trace, trace._store() as store, NotebookProgress() as progress:
        options = Options(
            cluster=reading.get("cluster") or trace.cluster,
            definition=definition,
            duration=duration,
            by=by,
            **charging.settings(),
            idle_below=idle_below,
            reference=reference,
            sections=tuple(sections),
            tables=tuple(names),
            exports=every,
            own=own,
            parameters=mapping("parameters", parameters),
            command="gpuctl.analyze",
            filter=job_filter(where),
            **_site(quotas, racks, borrow_below, reading, learned=learned),
        )
        # a choice of tables is shown as tables
        return Result(run(store, options, progress.at), None if wanted or sections else screen)


class JobExplanation:
    """Why one job waited, where it ran, how it used its GPUs, and why it failed.

    In a notebook it shows the text that ``gpuctl explain`` prints; `data` has it as plain data.

    Example:
        >>> import gpuctl
        >>> job = gpuctl.explain("sample_data/failures", "4002")
        >>> print(str(job).splitlines()[0])
        Job 4002 of failures: completed
        >>> job.data["job"]
        '4002'
        >>> job.figure().name
        'timeline'
        >>> job.to_html("job.html")
    """

    def __init__(self, found: Explanation) -> None:
        self._found = found

    @property
    def data(self) -> dict[str, Any]:
        """The document that ``gpuctl explain --json`` prints."""
        from gpuctl.reports.explain import as_json

        return as_json(self._found)

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write one self-contained page.

        Raises:
            UsageError: the file cannot be written.
        """
        from gpuctl.reports.explain import render_explanation
        from gpuctl.reports.html import write_page

        write_page(render_explanation(self._found), path_of(path))

    def figure(self) -> Figure:
        """Return the chart of when the job waited and ran.

        Raises:
            UsageError: no time of it is known.
        """
        from gpuctl.library.figures import figure_of
        from gpuctl.reports.drawables import of_explanation

        drawables = of_explanation(self._found)
        if not drawables:
            raise UsageError("no start or end of this job is known", hint="choose a job that has started")
        return figure_of(drawables, "timeline")

    def __str__(self) -> str:
        import io

        from gpuctl.reports.explain import print_explanation

        text = io.StringIO()
        print_explanation(self._found, color=False, pictures=False, file=text)
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        return preformatted(str(self))


def explain(
    source: object,
    job: str,
    *,
    where: Mapping[str, str | Sequence[str]] | None = None,
    quotas: PathOrText | Mapping[str, float] | None = None,
    racks: PathOrText | Mapping[str, str] | None = None,
    borrow_below: float | None = None,
    decisions: PathOrText | None = None,
    learned: bool = True,
    **reading: Unpack[LogReading],
) -> JobExplanation:
    """Explain why a job waited, where it ran, how it used its GPUs, and why it failed, with the evidence.

    Args:
        source: a `Trace`, or anything that `gpuctl.open` takes.
        job: job id, or its unique ending.
        where: as for `analyze`; compares the job with these jobs.
        quotas: as for `analyze`.
        racks: as for `analyze`.
        borrow_below: as for `analyze`.
        decisions: folder written by ``gpuctl replay --decisions``. Default: next to the store.
        learned: as for `analyze`.
        reading: how logs are read, if `source` is not open yet.

    Raises:
        UsageError: no such job, or several.

    Example:
        >>> import gpuctl
        >>> with gpuctl.open("sample_data/philly") as trace:
        ...     [job] = trace.sql("SELECT min(job) AS job FROM jobs")["job"]
        ...     state = gpuctl.explain(trace, job).data["job"]
    """
    from gpuctl.analyze.explain import explain as run
    from gpuctl.analyze.options import Options
    from gpuctl.library.progress import NotebookProgress

    with opened(source, reading) as trace, trace._store() as store, NotebookProgress() as progress:
        options: Options = Options(
            cluster=reading.get("cluster") or trace.cluster,
            filter=job_filter(where),
            command="gpuctl.explain",
            **_site(quotas, racks, borrow_below, reading, learned=learned),
        )
        folder = None if decisions is None else path_of(decisions, "decisions")
        return JobExplanation(run(store, str(job), options, folder, progress.at))


class FailureVerdict:
    """Why the program failed that wrote a log.

    Attributes:
        failed: whether it failed; None: perhaps.
        reason: the reason, None if nothing in the log gives one.
        category: its category.
        confidence: of the reason, from 0 to 1; None without a reason.
        evidence: the line that decided.
        line_no: its number in the log, from 1.
        others: other reasons with evidence in the log.
    """

    def __init__(self, verdict: Any) -> None:
        self.failed: bool | None = verdict.failed
        self.reason: str | None = verdict.reason
        self.category: str | None = verdict.category
        self.confidence: float | None = verdict.confidence if verdict.reason else None
        self.evidence: str | None = verdict.evidence
        self.line_no: int | None = verdict.line_no
        self.others: tuple[str, ...] = tuple(verdict.others)

    def __repr__(self) -> str:
        words = {True: "failed", False: "did not fail", None: "perhaps failed"}[self.failed]
        if not self.reason:
            return f"<{words}>"
        return f"<{words}: {self.reason} ({self.category}), confidence {self.confidence:.2f}, line {self.line_no}>"


def classify(
    log: object,
    exit_code: int | None = None,
    *,
    signatures: Sequence[PathOrText] = (),
    learned: bool = True,
) -> FailureVerdict:
    r"""Say why the program failed that wrote a log.

    Args:
        log: the log's text (a string with a line break, or bytes), or paths of the logs of one attempt.
        exit_code: of the program; 0: it did not fail.
        signatures: files of your own failure signatures.
        learned: classify a log that no signature explains with the trained model.

    Raises:
        UsageError: `exit_code` is no integer, or `log` is neither text nor paths.
        InputError: no log could be read, or a file of signatures is not what it should be.

    Example:
        >>> import gpuctl
        >>> gpuctl.classify("step 9\ntorch.cuda.OutOfMemoryError: CUDA out of memory.\n", exit_code=1).reason
        'gpu_out_of_memory'
    """
    import tempfile

    from gpuctl.ingest.joboutput.verdicts import judge
    from gpuctl.ingest.read.files import NotRead
    from gpuctl.joblogs.evidence import Facts
    from gpuctl.joblogs.table import load

    if exit_code is not None and (isinstance(exit_code, bool) or not isinstance(exit_code, int)):
        raise UsageError(f"exit_code: expected an integer, not {exit_code!r}", hint="exit_code=1")
    table = load([path_of(each, "signatures") for each in listed("signatures", signatures)], learned=learned)
    facts = Facts(exit_code=exit_code) if exit_code is not None else None
    with tempfile.TemporaryDirectory(prefix="gpuctl-") as folder:
        if isinstance(log, bytes) or (isinstance(log, str) and "\n" in log):
            place = Path(folder) / "log.txt"
            place.write_bytes(log if isinstance(log, bytes) else log.encode("utf-8", "surrogatepass"))
            paths = [place]
        else:
            paths = paths_of(log)
        found = list(judge(paths, table, facts=facts, together=True))
    judged = [each for each in found if not isinstance(each, NotRead)]
    if not judged or not judged[0].files:
        unread = [f"  {each.shown}: {each.why}" for each in found if isinstance(each, NotRead)]
        raise InputError("\n".join(["no log was read", *unread]))
    return FailureVerdict(judged[0].verdict)


def _site(
    quotas: PathOrText | Mapping[str, float] | None,
    racks: PathOrText | Mapping[str, str] | None,
    borrow_below: float | None,
    reading: LogReading,
    *,
    learned: bool,
) -> dict[str, Any]:
    from gpuctl.analyze.site_files import read_quotas, read_racks

    return {
        "quotas": read_quotas(path_of(quotas))
        if is_path(quotas)
        else {queue: number(f"quotas[{queue!r}]", gpus, 0) for queue, gpus in mapping("quotas", quotas).items()},
        "racks": read_racks(path_of(racks)) if is_path(racks) else mapping("racks", racks),
        "borrow_below": None if borrow_below is None else number("borrow_below", borrow_below, 0, 1),
        "signatures": tuple(path_of(each, "signatures") for each in reading.get("signatures", ())),
        "learned": learned,
    }


def _table_name(name: object) -> str:
    from gpuctl.queries.sections import FORMER_NAMES

    text = os.fspath(path_of(name, "tables"))
    return FORMER_NAMES.get(text, text)
