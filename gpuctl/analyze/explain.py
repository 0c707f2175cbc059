"""Explains one job from a store: why it waited, where it ran, how it used its GPUs, why it failed."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC
from typing import TYPE_CHECKING, Any

import gpuctl
from gpuctl.analyze import failure_table, shared_sql
from gpuctl.analyze.cluster import REPLAY
from gpuctl.analyze.gpu_usage.over_time import gpus_over_time
from gpuctl.analyze.reliability_events import EVENTS_OF_NODES
from gpuctl.analyze.shared_tables import SharedTables
from gpuctl.core.causes import CAUSES, main_cause
from gpuctl.core.errors import UsageError
from gpuctl.core.job_explanation import (
    Cause,
    Decision,
    Explanation,
    GpuUse,
    Interruption,
    Line,
    Log,
    Measure,
    Neighbour,
    Part,
    Place,
    SampledReason,
    Similar,
    Training,
    Tried,
    Use,
    Wait,
)
from gpuctl.core.path_checks import is_file, is_folder, within
from gpuctl.core.storable_text import plural
from gpuctl.joblogs.classify import SCHEDULER
from gpuctl.joblogs.table import load as load_signatures
from gpuctl.queries.catalogue import parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpuctl.analyze.options import Options
    from gpuctl.joblogs.table import Table
    from gpuctl.store.database import Store

_INTERRUPTED = frozenset({"failed", "node_fail", "preempted", "out_of_memory", "killed"})
"""States of attempts that events of nodes may explain."""
_MANY = 5
_LONGEST_DECISION = 1 << 20
_MOST_DECISIONS = 200
Row = dict[str, Any]


def explain(
    store: Store,
    job: str,
    options: Options,
    decisions: Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Explanation:
    """Explain one job of an open store, which is only read.

    Args:
        store: an open store.
        job: its id, or that of an array task (12_3) or of a part of a heterogeneous job (12+1).
        options: the cluster, quotas, racks and signatures, as for `gpuctl.analyze.run.analyze`.
        decisions: the log of decisions that a replay wrote, or its folder; else it is looked for next to the store.
        progress: called with (current step, steps done, total steps).

    Raises:
        UsageError: there is no such job (the message suggests similar ones), or several; or the cluster is ambiguous.
    """
    notify = progress or (lambda _text, _done, _all: None)
    cluster = _cluster(store, job, options.cluster)
    name = _find(store, cluster, job)
    chosen = {"cluster": cluster, "job": name}
    notify("reading jobs", 0, 3)
    shared = SharedTables(store, cluster, options, lambda text: notify(text, 1, 3))
    if shared.matching and not store.value("SELECT count(*) FROM base_filtered_jobs WHERE job = $job", {"job": name}):
        raise UsageError(f"job {name} is not among the jobs chosen: {options.filter.description(*shared.matching)}")
    among = (
        [f"the filter {options.filter.description(*shared.matching)}, this one among them"] if shared.matching else []
    )
    shared.ensure(("jobs", "attempts", "placements", "machines", "never_started", "queue_samples", "reasons", "delays"))
    shared.ensure(("gang_machines",))
    signatures = load_signatures(options.signatures, learned=options.learned)
    failure_table.build(store, cluster, signatures, job=name)
    notify("reading logs", 2, 3)
    [facts] = _rows(store, "explain_job", chosen)
    found = _JobFacts(store, chosen, signatures)
    tried = _rows(store, "explain_attempts", chosen)
    if any(row["state"] in _INTERRUPTED for row in tried) and store.value(EVENTS_OF_NODES, {"cluster": cluster}):
        shared.ensure(("reliability_interrupted_attempts",))
        found.add("interruptions", _rows(store, "explain_interruptions", chosen))
    over_time = gpus_over_time(store, cluster, name)
    attempts = tuple(_tried(row, found, over_time.get(row["attempt"], ())) for row in tried)
    never = store.frame("FROM base_never_started WHERE job = $job AND attempt IS NULL", {"job": name}).to_dicts()
    warnings = shared.site.warnings if shared.site else ()
    notes = [
        text for text in warnings if "quotas of" in text or "rack is a guess" in text or "racks are guesses" in text
    ]
    made, where, note = _decisions(store, cluster, name, decisions)
    notify("done", 3, 3)
    return Explanation(
        cluster=cluster,
        job=name,
        asked=job,
        facts={key: value for key, value in facts.items() if value is not None},
        attempts=attempts,
        never_started=_never(never[0]) if never else None,
        similar=_similar(_rows(store, "explain_similar", chosen), facts),
        decisions=made,
        decisions_from=where,
        notes=(*notes, *map(_preempted, _rows(store, "explain_preempted", chosen)), *([note] if note else []), *among),
        version=gpuctl.__version__,
        command=options.command,
    )


def _rows(store: Store, name: str, values: dict[str, Any]) -> list[Row]:
    sql = shared_sql.base_sql(name)
    return store.frame(sql, {key: values[key] for key in parameters(sql)}).to_dicts()


def _cluster(store: Store, job: str, name: str | None) -> str:
    """Return the cluster of that name; else the only one, else the only one that has the job."""
    if name is None:
        known = [row[0] for row in store.execute("SELECT cluster FROM clusters ORDER BY cluster").fetchall()]
        meant = {one: _rows(store, "explain_find", {"cluster": one, "text": job}) for one in known if len(known) > 1}
        surest = min((rows[0]["rank"] for rows in meant.values() if rows), default=None)
        holding = [one for one, rows in meant.items() if rows and rows[0]["rank"] == surest]
        if len(holding) > 1:
            raise UsageError(
                f"{len(holding)} clusters of {store.path} have a job {job}: {', '.join(holding)}",
                hint="name one with --cluster",
            )
        name = holding[0] if holding else None
    return store.cluster(name)


def _find(store: Store, cluster: str, text: str) -> str:
    found = _rows(store, "explain_find", {"cluster": cluster, "text": text})
    if len(found) == 1:
        return str(found[0]["job"])
    if found:
        more = f" or {len(found) - _MANY} more" if len(found) > _MANY else ""
        raise UsageError(
            f"{text} may be job {' or '.join(row['job'] for row in found[:_MANY])}{more}", hint="name one of them"
        )
    near = [row["name"] for row in _rows(store, "explain_near", {"cluster": cluster, "text": text})]
    listed = 'gpuctl query STORE "SELECT job FROM jobs" lists its jobs'
    raise UsageError(
        f"cluster {cluster} has no job {text!r}", hint=f"did you mean {' or '.join(near)}?" if near else listed
    )


class _JobFacts:
    """The rows of the job's attempts in the store, by attempt."""

    def __init__(self, store: Store, chosen: dict[str, Any], signatures: Table) -> None:
        self.signatures = signatures
        names = ("samples", "places", "use", "lines", "outputs", "progress")
        self._rows = {name: _rows(store, f"explain_{name}", chosen) for name in names}
        self._rows["failures"] = store.frame("FROM base_failures ORDER BY attempt").to_dicts()

    def add(self, name: str, rows: list[Row]) -> None:
        """Add rows of another kind."""
        self._rows[name] = rows

    def of(self, name: str, attempt: int) -> Iterator[Row]:
        """Return the rows of one kind of one attempt."""
        return (row for row in self._rows.get(name, ()) if row["attempt"] == attempt)


def _tried(row: Row, found: _JobFacts, over_time: tuple[GpuUse, ...]) -> Tried:
    number = row["attempt"]
    logs = tuple(
        Log(log["stream"], log["path"], log["bytes"], log["lines"], log["of_all"])
        for log in found.of("outputs", number)
    )
    use = next(found.of("use", number), None)
    interrupted = next(found.of("interruptions", number), None)
    same = ("number", "wait", "places", "use", "cause", "interrupted", "logs", "lines", "training", "gpus_over_time")
    names = [name for name in Tried.__dataclass_fields__ if name not in same]
    return Tried(
        number=number,
        wait=_wait(row, found),
        places=tuple(_place(place) for place in found.of("places", number)),
        use=None if use is None else Use(**{name: use[name] for name in Use.__dataclass_fields__}),
        cause=next((_cause(failure, logs) for failure in found.of("failures", number)), None),
        interrupted=None if interrupted is None else _interruption(interrupted),
        logs=logs,
        lines=tuple(_line(line, found.signatures) for line in found.of("lines", number)),
        training=tuple(_training(one) for one in found.of("progress", number)),
        gpus_over_time=over_time,
        **{name: row[name] for name in names},
    )


def _wait(row: Row, found: _JobFacts) -> Wait | None:
    if row["so_far_s"] is not None:
        return Wait(
            row["queued_ts"],
            row["so_far_s"],
            still_waits=row["still_waits"],
            never_started=True,
            scheduler_reason=row["source_reason"] or row["reason"],
        )
    if row["wait_s"] is None:
        return None
    parts = _parts(row)
    return Wait(
        row["queued_ts"],
        row["wait_s"],
        parts=parts,
        main=main_cause({part.cause: (part.low_s, part.high_s) for part in parts}),
        behind_s=row["behind_s"],
        scheduler_reason=row["source_reason"],
        sampled=tuple(
            SampledReason(s["reason"], s["samples"], s["eligible"], s["cause"])
            for s in found.of("samples", row["attempt"])
        ),
    )


def _parts(row: Row) -> tuple[Part, ...]:
    """Return the causes of a wait; none if the split lacks it, as for attempts of unknown size."""
    if row["fair_share_s"] is None:
        return ()
    ineligible = row["ineligible_s"]
    made = [
        Part(cause, seconds, max(0.0, round(seconds - less, 3)) if less else seconds, seconds + round(more, 3))
        for cause in CAUSES
        for seconds, less, more in [(row[f"{cause}_s"], row[f"{cause}_less_s"], row[f"{cause}_more_s"])]
    ]
    return (*made, Part("ineligible", ineligible, ineligible, ineligible))


def _preempted(row: Row) -> str:
    """Return YARN's preemptions of this job, or of another one while this one waited."""
    gpus = "" if row["gpus"] is None else f" with {row['gpus']:g} GPU{'' if row['gpus'] == 1 else 's'}"
    when = f"{row['first_ts'].astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC on"
    taken = f"{plural(row['containers'], 'container')}{gpus}"
    if row["own"]:
        return f"YARN preempted {taken} of this job, from {when}."
    return f"While this job waited, YARN preempted {taken} of {row['job']}, from {when}."


def _never(row: Row) -> Wait:
    return Wait(row["queued_ts"], row["so_far_s"], still_waits=row["still_waits"], never_started=True)


def _similar(rows: list[Row], facts: Row) -> Similar | None:
    if not rows:
        return None
    by = {"name": ("user", "name", "gpus"), "user": ("user", "gpus"), "queue": ("queue", "gpus")}[rows[0]["by"]]
    measures = tuple(
        Measure(row["measure"], row["own"], row["known"], row["p10"], row["p50"], row["p90"])
        for row in rows
        if row["known"]
    )
    alike = {key: facts[key] for key in by}
    return Similar(alike, rows[0]["jobs"], rows[0]["failed"], measures)


def _place(row: Row) -> Place:
    indices = row["gpu_indices"]
    return Place(
        machine=row["machine"],
        rack=row["rack"],
        gpus=row["gpus"],
        gpu_indices=None if indices is None else tuple(indices),
        estimated=row["estimated"],
        gpu_type=row["gpu_type"],
        machine_gpus=row["machine_gpus"],
        others=row["others"],
        longest=tuple(Neighbour(one["job"], one["gpus"], one["seconds"]) for one in row["longest"] or ()),
    )


def _cause(row: Row, logs: tuple[Log, ...]) -> Cause:
    stream = row["stream"]
    path = None if stream == SCHEDULER else next((log.path for log in logs if log.stream == stream), None)
    same = [name for name in Cause.__dataclass_fields__ if name not in {"path", "others"}]
    return Cause(path=path, others=tuple(row["others"]), **{name: row[name] for name in same})


def _interruption(row: Row) -> Interruption:
    return Interruption(**{name: row[name] for name in Interruption.__dataclass_fields__})


def _line(row: Row, signatures: Table) -> Line:
    signature = signatures.signatures.get(row["signature"] or "")
    reason = signatures.reasons.get(signature.reason or "") if signature else None
    return Line(
        row["stream"], row["line_no"], row["text"], row["signature"], reason.title if reason else None, row["count"]
    )


def _training(row: Row) -> Training:
    other = {"first": "first_value", "last": "last_value"}
    return Training(**{name: row[other.get(name, name)] for name in Training.__dataclass_fields__})


def _decisions(
    store: Store, cluster: str, job: str, given: Path | None
) -> tuple[tuple[Decision, ...], str | None, str | None]:
    """Return the decisions about the job, their file, and a message if there are none."""
    logs = store.frame(
        "SELECT path, sha256 FROM sources WHERE cluster = $cluster AND format = $format",
        {"cluster": cluster, "format": REPLAY},
    ).to_dicts()
    if not logs:
        if given is not None:
            raise UsageError(f"--decisions: cluster {cluster} is not from a replay", hint="leave it out")
        return (), None, None
    [log] = logs
    folders = [given] if given is not None else [store.path.parent, store.path.parent / "decisions"]
    for folder in folders:
        # the store may be untrusted: its path of the log must lead nowhere else
        path = within(folder, log["path"]) if is_folder(folder) else folder
        if path is not None and is_file(path):
            made, digest = _read_decisions(path, job)
            if digest == log["sha256"]:
                return made, str(path), None
    what = f"the decisions of {cluster} are not shown: {log['path']}, as this replay wrote it, is not "
    where = f"at {given}" if given is not None else f"beside {store.path}"
    return (), None, f"{what}{where}; gpuctl replay --decisions DIR writes it, --decisions DIR names it"


def _read_decisions(path: Path, job: str) -> tuple[tuple[Decision, ...], str]:
    """Return the decisions about a job, the first ones if there are very many, and the digest of the whole file."""
    digest = hashlib.sha256()
    made: list[Decision] = []
    name = json.dumps(job, ensure_ascii=False).encode()
    with path.open("rb") as file:
        # a longer line is not a decision, and arrives in pieces
        while line := file.readline(_LONGEST_DECISION):
            digest.update(line)
            if name not in line or len(made) >= _MOST_DECISIONS:
                continue
            try:
                row = json.loads(line)
                if row["job"] == job:
                    row.setdefault("nodes", row.get("servers"))  # its name until version 0.2
                    made.append(Decision(*(row[key] for key in Decision.__dataclass_fields__)))
            except (ValueError, KeyError, TypeError):
                # a replay does not write this; the digest will differ as well
                continue
    return tuple(made), digest.hexdigest()
