"""The screen of ``gpuctl analyze``: the cluster, its use, who waited and why, and who lost GPU-hours."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING

from gpuctl.core.causes import CAUSES, cause_name, may_be_main
from gpuctl.core.numbers import MISSING, lasting, number, percent, timed
from gpuctl.reports.cell_text import between, shown
from gpuctl.reports.screens.model import Figures, Grid, Head, Line, Screen, Sentences, Strip, Strips
from gpuctl.reports.screens.words import clipped, count, day, filtered, known, only, rows, worst
from gpuctl.reports.standout import findings
from gpuctl.reports.units import Units
from gpuctl.reports.why_empty import DOCUMENT, reasons

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.numbers import Unit
    from gpuctl.core.results import Analysis
    from gpuctl.reports.screens.model import Block
    from gpuctl.reports.screens.words import Row
    from gpuctl.reports.standout import Finding

LINES = 45
"""The screen has no more lines."""
TABLES = (
    "overview", "status", "queues", "users", "occupancy", "wait_by_size", "wait_by_queue", "wait_like_for_like",
    "never_started", "delay_causes", "delay_by_size", "gpu_util_by_state", "gpu_util_by_nodes", "idle_users",
    "gpu_hours_lost", "failure_reasons", "failure_savings", "failure_nodes", "mttf_by_size", "training_convergence",
)  # fmt: skip
"""The tables that the screen is made from."""

LOST = (
    "GPU-hours held by unsuccessful attempts: the last attempt of a job that failed or was killed, "
    "cancelled after its start, preempted or ended by its time limit; and every attempt followed by another one "
    "(retried). gpu_hours_lost splits them by size, users by user, both by kind"
)
_OWN_LINE = frozenset({"failure_nodes", "sources"})
_LEAST_INTERRUPTIONS = 10
"""Fewer leave the mean time between interruptions open by more than a factor of four."""
_SENTENCES = 6
_TOP = 5
_DAYS_FROM_H = 48.0
"""Hours from which on a time is shown in days."""


def screen(analysis: Analysis) -> Screen:
    """Make the screen of an analysis; a table that is missing or empty leaves its part out."""
    about, unit = only(analysis, "overview"), Units(analysis.tables).waits()
    found = [one for one in findings(analysis) if one.table not in _OWN_LINE][:_SENTENCES]
    blocks: list[Block | None] = [
        filtered(analysis, "; GPUs allocated, GPUs in use and jobs waiting cover all jobs"),
        _figures(analysis, about, unit),
        _strips(analysis),
        Sentences("What stands out", tuple(one.text for one in found)),
        _sizes(analysis, unit),
        _queues(analysis, unit),
        _users(analysis),
        _idle_users(analysis),
        _suspect_nodes(analysis),
        _interruptions(analysis),
        _empty(analysis),
        worst(analysis.warnings),
        _next(analysis, found),
    ]
    return Screen(
        _title(analysis, about),
        _subtitle(about),
        tuple(block for block in blocks if block is not None),
        LINES,
        _notes(analysis, found),
    )


def _title(analysis: Analysis, about: Row) -> str:
    name = clipped(analysis.cluster, 40)
    if about.get("first_submit_ts") is None:
        return f"{name}: no job with a submission time" if about.get("jobs") else f"{name}: no jobs"
    times = f"{day(about['first_submit_ts'])} to {day(about['last_ts'])}"
    times += "" if times.startswith("day ") else " UTC"
    return f"{name}: {times} ({lasting(86400 * about['span_days'])})"


def _subtitle(about: Row) -> str:
    users, queues = about.get("users"), about.get("queues")
    jobs = count(about.get("jobs"), "job")
    of = f" of {count(users, 'user')}" if users else " (users unknown)" if about.get("jobs") else ""
    among = f" in {count(queues, 'queue')}" if queues else ""
    gpus, machines = about.get("gpus"), about.get("machines")
    size = f"{count(gpus, 'GPU')} on {count(machines, 'node')}" if gpus else "GPUs of the cluster unknown"
    return f"{jobs}{of}{among}; {size}" if about.get("jobs") else size


def _figures(analysis: Analysis, about: Row, unit: Unit) -> Figures | None:
    if not about.get("jobs"):
        return None
    allocated = about.get("occupancy_pct")
    used = next((row for row in rows(analysis, "gpu_util_by_state") if row["gpus"] == row["state"] == "all"), {})
    waits = [about.get("wait_p50_min"), about.get("wait_p95_min")]
    lost, never = only(analysis, "gpu_hours_lost", "size_bucket"), only(analysis, "never_started", "size_bucket")
    waiting = never.get("waiting") or 0
    wanted = f" for {number(never['waiting_gpus'], 'GPUs')} GPUs" if waiting and never.get("waiting_gpus") else ""
    no_use = "n/a (not measured)" if about.get("gpu_samples") else "n/a (no telemetry)"
    wait = ", ".join(timed(value and 60 * value, unit) for value in waits) + f" {unit.name}"
    return Figures(
        (
            ("GPUs allocated", percent(allocated) if known(allocated) else _no_share(about)),
            ("GPU utilization", percent(used["mean_pct"]) if known(used.get("mean_pct")) else no_use),
            *_held_idle(analysis),
            _lost(lost),
            ("Wait p50, p95", wait if known(waits[0]) else "n/a (no start times)"),
            ("Still waiting", f"{count(waiting, 'job')}{wanted}"),
            ("Completed", _completed(analysis)),
        )
    )


def _held_idle(analysis: Analysis) -> tuple[tuple[str, str], ...]:
    """The GPU-hours at 0 % of jobs with a mean; nothing where no job has one."""
    every = [row for row in rows(analysis, "idle_users") if known(row["idle_gpu_hours"])]
    held, idle = (sum(row[name] for row in every) for name in ("gpu_hours", "idle_gpu_hours"))
    return (("GPU-hours idle", f"{percent(100 * idle / held)} of {number(held, 'GPU-h')}"),) if held else ()


def _lost(lost: Row) -> tuple[str, str]:
    """Return the lost hours: of GPUs or, if these are unknown, of nodes."""
    for what, hours, share in (("GPU-hours", "gpu_hours", "lost_pct"), ("Node-hours", "node_hours", "lost_node_pct")):
        if known(lost.get(hours)):
            held = number(lost[hours], "GPU-h")
            if known(lost.get(share)):
                return f"{what} lost", f"{percent(lost[share])} of {held}"
            return what, f"{held} (end states unknown)"
    return "GPU-hours lost", "n/a (GPUs unknown)"


def _empty(analysis: Analysis) -> Line | None:
    """Return what is unknown here, and where the documents explain how to provide it."""
    found = [reason.what for reason in reasons(analysis)]
    return Line("Not known", f"{', '.join(found)}; see {DOCUMENT}", lines=2) if found else None


def _no_share(about: Row) -> str:
    return "n/a (see warnings)" if about.get("gpus") and about.get("gpu_hours") else "n/a (GPUs unknown)"


def _completed(analysis: Analysis) -> str:
    shares = {row["state"]: row["jobs_pct"] for row in rows(analysis, "status")}
    if set(shares) <= {"unknown", "all"}:
        return "n/a (end states unknown)"
    return f"{percent(shares.get('completed', 0.0))} of jobs"


def _strips(analysis: Analysis) -> Strips | None:
    """Return GPUs in use and jobs waiting over time, from the bins of the table occupancy."""
    bins = [row for row in rows(analysis, "occupancy") if isinstance(row["ts"], datetime)]
    starts = [row["ts"].timestamp() for row in bins]
    if len(bins) < 2:
        return None
    ends = [*starts[1:], 2 * starts[-1] - starts[-2]]
    total = max((row["gpus_total"] or 0.0 for row in bins), default=0.0)
    strips = []
    for label, column, most in (("GPUs in use", "gpus_busy", total), ("Jobs waiting", "jobs_waiting", 0.0)):
        values = [row[column] for row in bins]
        top = most or max((value for value in values if known(value)), default=0.0)
        if top > 0:
            scale = f"of {number(top, 'GPUs')}" if most else f"max {number(top, 'GPUs')}"
            strips.append(Strip(label, tuple(zip(starts, ends, values, strict=True)), top, scale))
    return Strips(tuple(strips), starts[0], ends[-1], calendar=True) if strips else None


def _sizes(analysis: Analysis, unit: Unit) -> Grid | None:
    waits = [row for row in rows(analysis, "wait_by_size") if row["size_bucket"] != "all" and row["waits"]]
    causes = {row["size_bucket"]: row for row in rows(analysis, "delay_by_size")}
    explained = any((row.get("wait_h") or 0) > 0 for row in causes.values())
    heads = [Head("Wait by size", "GPUs", right=False), Head("waits"), Head("p50"), Head("p95", unit.name)]
    heads += [Head("main cause (share of waiting time)", right=False)] if explained else []
    cells = []
    for row in waits:
        own = [row["size_bucket"], shown(row["waits"])]
        own += [timed(row[name] and 60 * row[name], unit) for name in ("p50_min", "p95_min")]
        cells.append((*own, _main_cause(analysis, causes.get(row["size_bucket"], {}))) if explained else tuple(own))
    return Grid(tuple(heads), tuple(cells), least=6) if cells else None


def _main_cause(analysis: Analysis, row: Row) -> str:
    """Return the main cause with the range of its share, or what is known if the logs leave it open."""
    total = row.get("wait_h") or 0.0
    if total <= 0:
        return MISSING
    if row["main_cause"] is not None:
        share = between(row["main_low_pct"], row["main_high_pct"]).replace("\u00a0", " ")
        return f"{cause_name(row['main_cause'])}, {share}"
    ranges = {cause: (row[f"{cause}_low_h"], row[f"{cause}_high_h"]) for cause in CAUSES}
    possible = may_be_main(ranges | {"ineligible": (row["ineligible_h"], row["ineligible_h"])})
    if len(possible) <= 2:
        return " or ".join(cause_name(cause) for cause in possible)
    return "not known" if _limits_stated(analysis) else "unknown: give --quotas"


def _limits_stated(analysis: Analysis) -> bool:
    """Return whether quotas are stated, or limits come from other files than --quotas: those of Slurm."""
    stated = any(known(row["quota_gpus"]) and row.get("quota_source") != "inferred" for row in rows(analysis, "queues"))
    return stated or any(source.format.startswith("slurm") for source in analysis.sources)


def _queues(analysis: Analysis, unit: Unit) -> Grid | None:
    every = rows(analysis, "queues")
    top = every[:_TOP]
    title = f"Top {len(top)} of {len(every)} queues" if len(every) > len(top) else "Queues"
    quotas = any(known(row["quota_gpus"]) for row in top)
    hours, share, what = _known_hours(every, "gpu_hours", "node_hours")
    heads = [
        Head(title, right=False), Head("jobs"), Head(what), Head("of all", "%"), Head("wait p50"),
        Head("p95", unit.name),
    ]  # fmt: skip
    heads += [Head("quota")] if quotas else []
    cells = []
    for row in top:
        own = [clipped(row["queue"]), shown(row["jobs"]), number(row[hours], "GPU-h"), shown(row[share], "%")]
        own += [timed(row[name] and 60 * row[name], unit) for name in ("wait_p50_min", "wait_p95_min")]
        own += [number(row["quota_gpus"], "GPUs")] if quotas else []
        cells.append(tuple(own))
    return Grid(tuple(heads), tuple(cells)) if cells else None


def _known_hours(every: Sequence[Row], gpus: str, nodes: str) -> tuple[str, str, str]:
    """Return the column of known hours, that of their shares, and their unit: nodes if GPUs are unknown."""
    of_nodes = not any((row[gpus] or 0) > 0 for row in every) and any(known(row[nodes]) for row in every)
    name = nodes if of_nodes else gpus
    return name, f"{name}_pct", "node-hours" if of_nodes else "GPU-hours"


def _users(analysis: Analysis) -> Grid | None:
    every = rows(analysis, "users")
    if not any(row["user"] is not None for row in every):
        return None
    losing = [row for row in every if (row["lost_gpu_hours"] or 0) > 0]
    if not losing:
        return _users_by_hours(every)
    top = losing[:_TOP]
    heads = (
        Head("Users by GPU-hours lost", right=False), Head("lost"), Head("of all", "%"), Head("of own", "%"),
        Head("failed"), Head("killed"), Head("retried"),
    )  # fmt: skip
    cells = tuple(
        (
            clipped(row["user"]) if row["user"] is not None else "(not named)", number(row["lost_gpu_hours"], "GPU-h"),
            shown(row["lost_pct"], "%"), shown(row["own_lost_pct"], "%"), number(row["failed_h"], "GPU-h"),
            number(row["killed_h"], "GPU-h"), number(row["retried_h"], "GPU-h"),
        )
        for row in top
    )  # fmt: skip
    return Grid(heads, cells)


def _users_by_hours(every: Sequence[Row]) -> Grid | None:
    """Return the users who lost most node-hours, or else held most, if GPUs or ends of jobs are unknown."""
    hours, _, what = _known_hours(every, "gpu_hours", "node_hours")
    lost = any((row["lost_node_hours"] or 0) > 0 for row in every)
    if not any(known(row[hours]) for row in every) or any(
        known(row["lost_gpu_hours"]) and row["jobs"] for row in every
    ):
        return None
    by = "lost_node_hours" if lost else hours
    top = sorted(every, key=lambda row: -(row[by] or 0.0))[:_TOP]
    total = sum(row[by] or 0.0 for row in every)
    heads = (
        Head(f"Users by {what}{' lost' if lost else ''}", right=False), Head("lost" if lost else "held"),
        Head("of all", "%"), Head("jobs"),
    )  # fmt: skip
    cells = tuple(
        (
            clipped(row["user"]) if row["user"] is not None else "(not named)", number(row[by], "GPU-h"),
            shown(100 * (row[by] or 0.0) / total if total else None, "%"), shown(row["jobs"]),
        )
        for row in top
    )  # fmt: skip
    return Grid(heads, cells)


def _idle_users(analysis: Analysis) -> Grid | None:
    """Who held the most GPU-hours at 0 %; nothing without means of jobs."""
    top = [row for row in rows(analysis, "idle_users") if (row["idle_gpu_hours"] or 0) > 0][:_TOP]
    heads = (
        Head("Users by GPU-hours idle", right=False), Head("idle"), Head("of all", "%"), Head("of own", "%"),
        Head("utilization", "%"), Head("unused"), Head("jobs"),
    )  # fmt: skip
    cells = tuple(
        (
            clipped(row["user"]) if row["user"] is not None else "(not named)", number(row["idle_gpu_hours"], "GPU-h"),
            shown(row["idle_pct"], "%"), shown(row["own_idle_pct"], "%"), shown(row["util_mean_pct"], "%"),
            shown(row["gpus_unused"]), shown(row["measured_jobs"]),
        )
        for row in top
    )  # fmt: skip
    return Grid(heads, cells) if cells else None


def _suspect_nodes(analysis: Analysis) -> Line | None:
    every = rows(analysis, "failure_nodes")
    if not every:
        return None
    bad = [row for row in every if row["bad"] == "yes"]
    listed = [
        f"{clipped(row['machine'])} ({shown(row['failures'])} of {shown(row['attempts'])} attempts failed, "
        f"{shown(row['expected'])} expected)"
        for row in bad[:3]
    ]
    more = f"; and {len(bad) - len(listed)} more" if len(bad) > len(listed) else ""
    text = "; ".join(listed) + more if listed else _no_bad_node(every)
    return Line("Suspect nodes", text, lines=2)


def _interruptions(analysis: Analysis) -> Line | None:
    """How often infrastructure interrupts jobs of the size that held most GPU-hours; None where too few were."""
    seen = [
        row
        for row in rows(analysis, "mttf_by_size")
        if row["kind"] == "measured" and not row["partial_node"] and row["interruptions"] >= _LEAST_INTERRUPTIONS
    ]
    if not seen:
        return None
    row = max(seen, key=lambda row: row["gpus"] * row["run_h"])
    low, high = row["mttf_low_h"], row["mttf_high_h"]
    unit, hours = ("days", 24) if low >= _DAYS_FROM_H else ("hours", 1)
    text = (
        f"hardware or other infrastructure interrupts a job of {number(row['gpus'], 'GPUs')} GPUs every "
        f"{number(low / hours)} to {number(high / hours)} {unit} of running "
        f"({count(row['interruptions'], 'interruption')})"
    )
    unknown = row["interruptions_high"] - row["interruptions"]
    text += f"; {count(unknown, 'end')} of unknown cause not counted" if unknown else ""
    return Line("Interruptions", text, lines=2)


def _no_bad_node(every: Sequence[Row]) -> str:
    """Return that no node is shown to be bad, and how bad one would have to be to be detected."""
    times = sorted(row["detectable"] if known(row.get("detectable")) else math.inf for row in every)
    least = times[len(times) // 2]
    if not math.isfinite(least):
        return "none found, but too few attempts failed to detect any"
    return f"none found; one failing {number(least)} times as often would be detected in 4 of 5 cases"


def _next(analysis: Analysis, found: Sequence[Finding]) -> Line:
    if not only(analysis, "overview").get("jobs"):
        return Line("Next", "also load the job log into this store: docs/how-to/sources.md lists the formats")
    sections = [table.section for one in found if (table := analysis.table(one.table)) is not None]
    waited = any(row["waits"] for row in rows(analysis, "wait_by_size"))
    ways = [f"--section {section}" for section in dict.fromkeys([*sections, "queueing" if waited else "overview"])][:1]
    ways += ["--table users" if waited else "--table queues", "--all", "--html FILE"]
    ways += ["gpuctl explain JOB"] if waited else []
    return Line("Next", ", ".join(ways))


def _notes(analysis: Analysis, found: Sequence[Finding]) -> tuple[tuple[str, str], ...]:
    notes: list[tuple[str, str]] = [("Caveat", text) for text in analysis.warnings]
    notes.append(("GPU-hours lost", LOST))
    for label, name, column in (
        ("GPUs allocated", "overview", "occupancy_pct"),
        ("GPU utilization", "gpu_util_by_state", "mean_pct"),
        ("GPU-hours idle", "idle_users", "idle_gpu_hours"),
        ("Wait p50, p95", "overview", "wait_p50_min"),
        ("Still waiting", "never_started", "waiting"),
        ("Suspect nodes", "failure_nodes", "bad"),
        ("Suspect nodes: none found; a typical node", "failure_nodes", "detectable"),
        ("Interruptions", "mttf_by_size", "mttf_low_h"),
    ):
        table = analysis.table(name)
        if table is not None:
            words = next((one.description for one in table.columns if one.name == column), "")
            notes.append((f"{label} (table {name})", f"{words}. {table.population}"))
    seen = {"overview", "gpu_util_by_state", "idle_users", "never_started", "failure_nodes", "mttf_by_size"}
    for name in TABLES:
        table = analysis.table(name)
        if table is not None and name not in seen and table.frame.height:
            notes.append((f"{table.title} (table {name})", table.population))
    notes += [(f"Why this stands out (table {one.table})", one.rule) for one in found]
    return tuple(notes)
