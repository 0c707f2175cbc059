"""Findings in a result: a few sentences, each with its numbers, its table, and the rule that selected it.

A rule examines one result table and returns nothing unless a value exceeds its threshold, which the ``rule`` of its
sentence states. No rule uses names. Findings are a reading aid: the tables are the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpuctl.core.numbers import lasting, timed
from gpuctl.core.storable_text import plural
from gpuctl.reports.advice import advice
from gpuctl.reports.cell_text import between, shown, visible
from gpuctl.reports.policies import CHANCE, better, compared, is_significant, paired
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpuctl.core.numbers import Unit
    from gpuctl.core.results import Analysis, ResultTable

    Row = dict[str, Any]
    Rule = Callable[[ResultTable, Units], Iterator["Finding"]]

FEW = 20
"""Minimum number of waits, attempts or jobs for a statement."""


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        text: the sentence, with the numbers behind it.
        rule: its reason: the threshold exceeded.
        table: the result table of the value.
        weight: sort key, largest first: how far it exceeds its threshold.
        about: its subject: a cause, reason, node, queue or policy; empty if it has none.
        action: what to do, and about whom; empty if there is nothing to say.
    """

    text: str
    rule: str
    table: str
    weight: float
    about: str = ""
    action: str = ""


def findings(analysis: Analysis) -> tuple[Finding, ...]:
    """Return the findings, the farthest beyond its threshold first."""
    units = Units(analysis.tables)
    sure = {"delay_by_size"} if analysis.table("delay_causes") is not None else set()
    found = [
        finding
        for name, columns, rule in _RULES
        if name not in sure
        and (table := analysis.table(name)) is not None
        and set(columns.split()) <= set(table.frame.columns)
        for finding in rule(table, units)
    ]
    found += _waits(analysis, units)
    found += _policies(analysis, units.timed("replay_vs_baseline", "mean_s"))
    found = [replace(one, action=advice(analysis, one.table, one.about)) for one in found]
    return tuple(sorted(found, key=lambda one: -one.weight))


def rules_applied(analysis: Analysis) -> int:
    """Return how many rules had a table with rows to look at."""
    names = [*(name for name, _, _ in _RULES), "wait_by_queue", "wait_by_size", "replay_vs_baseline"]
    return sum(1 for name in names if (table := analysis.table(name)) is not None and table.frame.height)


def _rows(table: ResultTable, **where: str) -> list[Row]:
    rows = table.frame.iter_rows(named=True)
    return [row for row in rows if all(str(row[column]) == value for column, value in where.items())]


def _pct(value: float) -> str:
    return f"{shown(value, '%')}\u00a0%"


def _ends(row: Row, unit: Unit) -> tuple[str, str]:
    """Return the difference of two mean waits, and its interval."""
    least, most = sorted(abs(row[name]) for name in ("diff_low_s", "diff_high_s"))
    return _nbsp(lasting(abs(row["diff_mean_s"]), unit)), f"{timed(least, unit)} to {_nbsp(lasting(most, unit))}"


def _minutes(value: float, unit: Unit) -> str:
    """Return a time in minutes, in the unit of its quantity."""
    return _nbsp(lasting(60 * value, unit))


def _nbsp(text: str) -> str:
    return text.replace(" ", "\u00a0")


_ORACLE = "oracle"
_CAUSES = {
    "fair_share": "the queue or its owner had used up its share",
    "capacity": "too few GPUs were free in the cluster",
    "fragmentation": "GPUs were free, but not close together",
    "ineligible": "jobs were held: by a user, a dependency, a begin time or a limit",
}


def _causes(table: ResultTable, units: Units) -> Iterator[Finding]:
    rows = _rows(table)
    total = next((row["hours"] for row in rows if row["cause"] == "all"), 0.0)
    waits = sum(row["waits"] for row in rows if row["cause"] != "all")
    named = [row for row in rows if row["cause"] != "all" and row["low_pct"] is not None]
    for row in named:
        apart = all(other is row or not row["low_pct"] <= other["high_pct"] for other in named)
        if row["cause"] in _CAUSES and row["low_pct"] >= 40 and waits >= FEW and apart:
            hours = f"{shown(row['hours'])} of {shown(total)}\u00a0h"
            share = between(row["low_pct"], row["high_pct"])
            text = f"{share} of the queueing time ({hours}) passed because {_CAUSES[row['cause']]}."
            rule = (
                "one cause has at least 40 % of the queueing time, and its range lies above the range of every "
                "other cause"
            )
            yield Finding(text, rule, table.name, row["low_pct"] / 40, row["cause"])


def _cause(table: ResultTable, units: Units) -> Iterator[Finding]:
    for row in _rows(table, size_bucket="all"):
        cause = row["main_cause"]
        if cause in _CAUSES and row["main_low_pct"] >= 40 and row["waits"] >= FEW:
            hours = f"{shown(row[f'{cause}_h'])} of {shown(row['wait_h'])}\u00a0h"
            share = between(row["main_low_pct"], row["main_high_pct"])
            text = f"{share} of the queueing time ({hours}) passed because {_CAUSES[cause]}."
            rule = (
                "one cause has at least 40 % of the queueing time, and its range lies above the range of every "
                "other cause"
            )
            yield Finding(text, rule, table.name, row["main_low_pct"] / 40, cause)


def _waits(analysis: Analysis, units: Units) -> Iterator[Finding]:
    """Return the queue and the gangs that wait longest, if similar ones wait less.

    The comparison excludes large jobs, busy days, a busy queue and chance as explanations.
    """
    like = analysis.table("wait_like_for_like")
    if like is None or not set(_LIKE.split()) <= set(like.frame.columns) or "filter" in analysis.settings:
        return
    rows = [row for row in _rows(like) if row["p"] is not None]
    queues = {row["queue"]: row for row in rows if row["size_bucket"] == "all"}
    sizes = {row["size_bucket"]: row for row in rows if row["queue"] == "all"}
    for name, columns, rule, known in (
        ("wait_by_queue", "queue size_bucket waits p95_min", _queue, queues),
        ("wait_by_size", "size_bucket waits mean_min", _gangs, sizes),
    ):
        table = analysis.table(name)
        if table is not None and set(columns.split()) <= set(table.frame.columns):
            shown_ones = {key: row for key, row in known.items() if row["p"] * len(known) <= CHANCE}
            yield from rule(table, units, shown_ones)


def _queue(table: ResultTable, units: Units, like: dict[Any, Row]) -> Iterator[Finding]:
    rows = [row for row in _rows(table, size_bucket="all") if row["waits"] >= FEW and row["p95_min"] is not None]
    if len(rows) < 3:
        return
    worst, unit = max(rows, key=lambda row: row["p95_min"]), units.timed(table.name, "p95_min")
    middle = sorted(row["p95_min"] for row in rows)[len(rows) // 2]
    if worst["p95_min"] >= 30 and worst["p95_min"] >= 2 * middle and worst["queue"] in like:
        text = (
            f"Queue {visible(str(worst['queue']))} waits longest: 95\u00a0% of its attempts start within "
            f"{_minutes(worst['p95_min'], unit)}, against {_minutes(middle, unit)} in the median queue. "
            f"Its mean is {_range(like[worst['queue']], ' times')} the mean for the same sizes on the same days in "
            "other queues."
        )
        rule = (
            f"95th percentile at least 30 min and twice the median of the queues with {FEW} waits or more; longer "
            "than comparable waits beyond chance"
            f" (p at most {CHANCE}, corrected; 95 % interval)"
        )
        yield Finding(text, rule, table.name, worst["p95_min"] / (2 * middle) if middle else 2.0, str(worst["queue"]))


def _gangs(table: ResultTable, units: Units, like: dict[Any, Row]) -> Iterator[Finding]:
    by_size = {row["size_bucket"]: row for row in _rows(table) if row["waits"] >= FEW}
    small, large = by_size.get("1"), by_size.get(">8") or by_size.get("5-8")
    if small is None or large is None or large["mean_min"] < 30 or large["mean_min"] < 5 * small["mean_min"]:
        return
    if large["size_bucket"] not in like:
        return
    most, least = (_minutes(row["mean_min"], units.timed(table.name, "mean_min")) for row in (large, small))
    text = (
        f"Large gangs wait longest: {most} on average for {_gpus(large['size_bucket'])} "
        f"({shown(large['waits'])} waits), {least} for one GPU ({shown(small['waits'])} waits); like-for-like ratio "
        f"{_range(like[large['size_bucket']])}."
    )
    rule = (
        "mean wait of the largest gangs at least 30 min and five times the mean of single-GPU jobs; longer than "
        "comparable waits beyond chance"
        f" (p at most {CHANCE}, corrected; 95 % interval)"
    )
    yield Finding(text, rule, table.name, min(large["mean_min"] / max(5 * small["mean_min"], 1.0), 5.0))


def _range(row: Row, word: str = "") -> str:
    return f"{shown(row['ratio'])}{word} ({shown(row['ratio_low'])} to {shown(row['ratio_high'])})"


def _gpus(bucket: str) -> str:
    return f"more than {bucket[1:]} GPUs" if bucket.startswith(">") else f"{bucket} GPUs"


def _scattered(table: ResultTable, units: Units) -> Iterator[Finding]:
    best: Finding | None = None
    rows = [row for row in _rows(table) if row["mean_pct"] is not None and (row["gpu_minutes"] or 0) >= 1000]
    fewest: dict[Any, Row] = {}
    for row in rows:
        if row["gpus"] not in fewest or row["nodes"] < fewest[row["gpus"]]["nodes"]:
            fewest[row["gpus"]] = row
    for row in rows:
        base = fewest[row["gpus"]]
        drop = base["mean_pct"] - row["mean_pct"]
        if row["nodes"] > base["nodes"] and drop >= 5:
            text = (
                f"Jobs of {row['gpus']} GPUs: {_pct(row['mean_pct'])} GPU utilization on {row['nodes']} nodes, "
                f"{_pct(base['mean_pct'])} on {base['nodes']}: a difference, not an effect (see gpuctl lessons)."
            )
            rule = "utilization at least 5 points lower on more nodes, 1,000 GPU-minutes or more of each"
            best = max((best, Finding(text, rule, table.name, drop / 5)), key=lambda one: one.weight if one else 0.0)
    if best is not None:
        yield best


def _spread(table: ResultTable, units: Units) -> Iterator[Finding]:
    for row in _rows(table, size_bucket="all"):
        if row["ratio_high"] is not None and row["ratio_high"] < 1:
            text = (
                f"Gangs on {row['placement']} reach {shown(row['ratio'])} of the GPU utilization of comparable "
                "gangs on the fewest nodes"
                f" (90\u00a0% interval {shown(row['ratio_low'])} to {shown(row['ratio_high'])})."
            )
            yield Finding(text, "the 90 % interval of the ratio lies below 1", table.name, 1 / row["ratio"])


def _lost(table: ResultTable, units: Units) -> Iterator[Finding]:
    for row in _rows(table, size_bucket="all"):
        share, hours = row["lost_pct"], row["gpu_hours"]
        if share is not None and share >= 20:
            parts = (("killed_h", "killed"), ("failed_h", "failed"), ("retried_h", "retried"))
            shares = ", ".join(f"{_pct(100 * row[column] / hours)} {word}" for column, word in parts if row[column])
            text = f"{_pct(share)} of {shown(hours)} GPU-hours were lost in unsuccessful attempts: {shares}."
            yield Finding(text, "at least 20 % of the GPU-hours", table.name, share / 20)


def _idle(table: ResultTable, units: Units) -> Iterator[Finding]:
    rows = _rows(table)
    held, idle = (sum(float(row[name] or 0) for row in rows) for name in ("gpu_hours", "idle_gpu_hours"))
    if held and idle >= 0.1 * held and sum(row["measured_jobs"] for row in rows) >= FEW:
        text = f"{_pct(100 * idle / held)} of {shown(held)} measured GPU-hours passed without any use of the GPU."
        yield Finding(text, "at least 10 % of the measured GPU-hours are idle", table.name, 10 * idle / held)


def _reason(table: ResultTable, units: Units) -> Iterator[Finding]:
    rows = [row for row in _rows(table) if row["reason"] not in {"all", "No signature"} and row["trials"] >= 5]
    if not rows:
        return
    top = max(rows, key=lambda row: row["gpu_minutes_pct"] or 0.0)
    share = top["gpu_minutes_pct"] or 0.0
    if share >= 15:
        unknown = next((row["gpu_minutes_pct"] for row in _rows(table, reason="No signature")), None) or 0.0
        text = (
            f"{visible(str(top['reason']))} accounts for {_pct(share)} of failed attempts' GPU-time: "
            f"{shown(top['trials'])} attempts of {plural(top['users'], 'user')}, half of which failed within "
            f"{_minutes(top['rtf_p50_min'] or 0.0, units.timed(table.name, 'rtf_p50_min'))}. No other known reason "
            f"cost more; {_pct(unknown)} has no known reason."
        )
        rule = "one reason has at least 15 % of failed attempts' GPU-time"
        yield Finding(text, rule, table.name, share / 15, str(top["reason"]))


def _nodes(table: ResultTable, units: Units) -> Iterator[Finding]:
    bad = [row for row in _rows(table) if str(row["bad"]) == "yes"]
    for row in bad[:5]:
        text = (
            f"Node {visible(str(row['machine']))} fails more often than chance explains: "
            f"{shown(row['failures'])} of {shown(row['attempts'])} attempts, {shown(row['expected'])} expected "
            f"(p = {shown(row['adjusted_p'])}, corrected for {table.frame.height} nodes)."
        )
        rule = "its failures exceed chance with a probability of at most 0.05, corrected"
        yield Finding(text, rule, table.name, 3.0, str(row["machine"]))


def _savings(table: ResultTable, units: Units) -> Iterator[Finding]:
    rows = [row for row in _rows(table) if row["gpu_hours_pct"] is not None]
    top = max(rows, key=lambda row: row["gpu_hours_pct"], default=None)
    if top is not None and top["gpu_hours_pct"] >= 2:
        text = (
            f"At most {shown(top['gpu_hours'])} GPU-hours ({_pct(top['gpu_hours_pct'])}) could have been saved by one "
            f"rule: {visible(str(top['lesson']))}."
        )
        yield Finding(text, "at least 2 % of the GPU-hours; an upper bound", table.name, top["gpu_hours_pct"] / 2)


def _converged(table: ResultTable, units: Units) -> Iterator[Finding]:
    for row in _rows(table, state="all"):
        share = row["after_gpu_hours_pct"]
        if share is not None and share >= 10 and row["jobs_timed"] >= FEW:
            text = (
                f"{_pct(share)} of the GPU-hours of {shown(row['jobs_timed'])} trainings came after their loss was "
                "within 0.1\u00a0% of its lowest (known only in hindsight)."
            )
            yield Finding(text, "at least 10 % of the GPU-hours of training jobs", table.name, share / 10)


def _policies(analysis: Analysis, unit: Unit) -> Iterator[Finding]:
    """Compare the policies of a replay with its baseline: every better one, the best usable one first."""
    needs = _needs(analysis.table("replay_summary"))
    oracles = [name for name, need in needs.items() if need.startswith(_ORACLE)]
    every, found = compared(analysis, "wait"), better(analysis, "wait")
    usable = [row for row in found if row["policy"] not in oracles]
    worse = [row for row in every if row["diff_mean_s"] > 0 and is_significant(row, len(every))]
    best = next((row for row in usable if needs.get(row["policy"]) == ""), None)
    rule = f"p is at most {CHANCE}, corrected for {len(every)} policies"
    table = "replay_vs_baseline"
    if best is not None:
        text = (
            f"{visible(str(best['policy']))} cuts the mean wait by {_difference(best, unit)}, from "
            f"{_from(best, unit)}; it needs no oracle and preempted no job."
        )
        yield Finding(text, f"{rule}; the best policy without oracle and preemption", table, 4.0, str(best["policy"]))
    others = [row for row in usable if row is not best]
    if others:
        listed = "; ".join(_policy_change(row, needs.get(row["policy"]) or "", unit) for row in others)
        also = "Also better than" if best is not None else "Better than"
        yield Finding(f"{also} {visible(str(others[0]['baseline']))} by mean wait: {listed}.", rule, table, 3.9)
    if worse:
        last = worse[-1]
        of = f", the most among {len(worse)} worse policies" if len(worse) > 1 else ""
        text = (
            f"{visible(str(last['policy']))} lengthens the mean wait by {_difference(last, unit)}, from "
            f"{_from(last, unit)}{of}."
        )
        yield Finding(text, rule, table, 3.5)
    missing_values = [row for row in paired(analysis, "wait") if row["diff_low_s"] is None]
    if missing_values and not _equal(missing_values):
        yield Finding(_too_short(missing_values), "the difference has no interval", table, 3.2)
    elif not found and not worse and (every or missing_values):
        yield Finding(
            _no_difference([*every, *missing_values], unit), f"no p is at most {CHANCE}, corrected", table, 3.0
        )
    if oracles:
        bounds = [_policy_change(row, needs[row["policy"]], unit) for row in found if row["policy"] in oracles]
        cut = f" They bound the possible reduction of the mean wait: {'; '.join(bounds)}." if bounds else ""
        text = (
            f"Oracles, which know true run times, unlike real schedulers: {', '.join(map(visible, oracles))}. "
            f"Their results are bounds.{cut}"
        )
        yield Finding(text, "a policy knows true run times", "replay_summary", 2.0)


def _equal(every: Sequence[Row]) -> bool:
    """Return whether no job waits longer or shorter under one of them than under the baseline."""
    return all(row.get("equal_pct") == 100 or (row["p"] is None and row["diff_low_s"] is not None) for row in every)


def _too_short(every: Sequence[Row]) -> str:
    names = ", ".join(visible(str(row["policy"])) for row in every)
    return (
        f"The trace is too short to judge how {names} {'performs' if len(every) == 1 else 'perform'} against "
        f"{visible(str(every[0]['baseline']))} by mean wait: it has too few independent periods at this load."
    )


def _no_difference(every: Sequence[Row], unit: Unit) -> str:
    baseline = visible(str(every[0]["baseline"]))
    if not any(row["mean_s"] or row["baseline_mean_s"] for row in every):
        return "No job waits under any of these policies, so these jobs cannot show which is better."
    if _equal(every):
        return f"Every job waits equally long under all of these policies and {baseline}."
    known = [row for row in every if row["diff_low_s"] is not None]
    low, high = min(row["diff_low_s"] for row in known), max(row["diff_high_s"] for row in known)
    ends = f"-{timed(-low, unit)}" if low < 0 else timed(low, unit)
    return (
        f"No policy's mean wait differs significantly from {baseline}'s; "
        f"the 95\u00a0% intervals range from {ends} to {_nbsp(lasting(high, unit))}."
    )


def _from(row: Row, unit: Unit) -> str:
    """Return the mean wait under the baseline, and under the policy."""
    before, after = timed(row["baseline_mean_s"], unit), _nbsp(lasting(row["mean_s"], unit))
    return f"{before} under {visible(str(row['baseline']))} to {after}"


def _needs(table: ResultTable | None) -> dict[str, str]:
    """Return the inputs of each policy that a real scheduler may lack, in words; empty if there are none."""
    if table is None or not {"policy", "oracle", "preemptions"} <= set(table.frame.columns):
        return {}
    return {
        row["policy"]: ", ".join(
            [*([_ORACLE] if row["oracle"] else []), *([_preempted(row["preemptions"])] if row["preemptions"] else [])]
        )
        for row in _rows(table)
    }


def _preempted(number: int) -> str:
    return f"{shown(number)} preemption{'' if number == 1 else 's'}"


def _difference(row: Row, unit: Unit) -> str:
    mean, ends = _ends(row, unit)
    return f"{mean} (95\u00a0% interval {ends})"


def _policy_change(row: Row, needs: str, unit: Unit) -> str:
    mean, ends = _ends(row, unit)
    more = f", {needs}" if needs else ""
    return f"{visible(str(row['policy']))} by {mean} ({ends}{more})"


def _unfinished(table: ResultTable, units: Units) -> Iterator[Finding]:
    counts = {row["policy"]: row["jobs"] - row["jobs_finished"] - row.get("jobs_cut", 0) for row in _rows(table)}
    left = {name: count for name, count in counts.items() if count > 0}
    if left:
        listed = ", ".join(f"{visible(str(name))} {shown(count)}" for name, count in left.items())
        text = f"Jobs that did not finish, excluded from every mean: {listed}."
        yield Finding(text, "a job did not finish in the replay", table.name, 5.0)


def _rejected(table: ResultTable, units: Units) -> Iterator[Finding]:
    rows = _rows(table)
    read, rejected = sum(row["rows_in"] for row in rows), sum(row["rows_rejected"] for row in rows)
    if rejected and 1000 * rejected >= read:
        worst = max(rows, key=lambda row: row["rows_rejected"])
        why = f", most for: {visible(str(worst['most_rejected_for']))}" if worst.get("most_rejected_for") else ""
        share = _pct(100 * rejected / read)
        text = f"{shown(rejected)} of {shown(read)} rows of the sources were rejected ({share}){why}."
        yield Finding(text, "at least one row in a thousand", table.name, 1000 * rejected / read)


_LIKE = "queue size_bucket ratio ratio_low ratio_high p"
_RULES: tuple[tuple[str, str, Rule], ...] = (
    ("delay_causes", "cause waits hours share_pct low_pct high_pct", _causes),
    ("delay_by_size", "size_bucket wait_h waits main_cause main_low_pct main_high_pct", _cause),
    ("gpu_util_by_nodes", "gpus nodes gpu_minutes mean_pct", _scattered),
    ("locality_speed", "size_bucket placement ratio ratio_low ratio_high", _spread),
    ("gpu_hours_lost", "size_bucket gpu_hours killed_h failed_h retried_h lost_pct", _lost),
    ("idle_users", "measured_jobs gpu_hours idle_gpu_hours", _idle),
    ("failure_reasons", "reason trials users rtf_p50_min gpu_minutes_pct", _reason),
    ("failure_nodes", "machine bad attempts failures expected adjusted_p", _nodes),
    ("failure_savings", "lesson gpu_hours gpu_hours_pct", _savings),
    ("training_convergence", "state jobs_timed after_gpu_hours_pct", _converged),
    ("replay_summary", "policy jobs jobs_finished", _unfinished),
    ("sources", "rows_in rows_rejected", _rejected),
)  # fmt: skip
