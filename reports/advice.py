"""What to do about a finding, and about whom: the queue, user or node with the largest part of it.

The names are those of the largest values of other tables of the same result. A large value is not proof of fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuctl.reports.cell_text import shown, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.core.results import Analysis

    Row = dict[str, Any]

_TOTAL = "all"
_INFRASTRUCTURE = "infrastructure"


def advice(analysis: Analysis, table: str, about: str) -> str:
    """Return a sentence on what to do; empty if there is nothing to say.

    Args:
        analysis: the result of the finding.
        table: the finding's table.
        about: its subject: a cause, reason, node or queue; empty if it has none.
    """
    make = _ADVICE.get(table)
    return make(analysis, about) if make is not None else ""


def _largest(analysis: Analysis, table: str, name: str, value: str, **where: str) -> tuple[str, float, float] | None:
    """Return the name with the largest value, that value, and the sum over all names; None if nothing is above 0."""
    found = analysis.table(table)
    if found is None or not {name, value, *where} <= set(found.frame.columns):
        return None
    rows: list[Row] = [
        row
        for row in found.frame.iter_rows(named=True)
        if row[name] not in {None, _TOTAL}
        and (row[value] or 0) > 0
        and all(row[column] == wanted for column, wanted in where.items())
    ]
    if not rows:
        return None
    top = max(rows, key=lambda row: row[value])
    return visible(str(top[name])), float(top[value]), sum(float(row[value]) for row in rows)


def _cause(analysis: Analysis, cause: str) -> str:
    action = {
        "fair_share": "Review quotas and limits",
        "capacity": "Test more nodes with gpuctl replay --add-nodes N, or move work to quieter hours",
        "fragmentation": "Pack small jobs onto fewer nodes, or let gangs start spread over more",
        "ineligible": "Check limits, dependencies and begin times",
    }[cause]
    top = _largest(analysis, "delay_by_queue", "queue", f"{cause}_h")
    if top is None:
        return f"{action}."
    queue, hours, total = top
    return f"{action}, first for queue {queue}: {shown(hours)} of {shown(total)}\u00a0h of waiting for this cause."


def _queue(_analysis: Analysis, queue: str) -> str:
    return f"Compare the quota of queue {visible(queue)} with its demand: gpuctl analyze LOGS --queue {visible(queue)}."


def _gangs(analysis: Analysis, _about: str) -> str:
    top = _largest(analysis, "delay_by_queue", "queue", "wait_h")
    first = f" Queue {top[0]} waited most: {shown(top[1])} of {shown(top[2])}\u00a0h." if top else ""
    return f"Test a policy that reserves GPUs for large gangs: gpuctl replay LOGS --policy fifo,easy.{first}"


def _spread(_analysis: Analysis, _about: str) -> str:
    return "Estimate whether waiting for fewer nodes pays: gpuctl lessons LOGS."


def _lost(analysis: Analysis, _about: str) -> str:
    top = _largest(analysis, "users", "user", "lost_gpu_hours")
    if top is None:
        return ""
    user, hours, total = top
    return f"Start with user {user}, who lost most: {shown(hours)} of {shown(total)} GPU-hours."


def _idle(analysis: Analysis, _about: str) -> str:
    top = _largest(analysis, "idle_users", "user", "idle_gpu_hours")
    if top is None:
        return ""
    user, hours, total = top
    return f"Start with user {user}, who left most idle: {shown(hours)} of {shown(total)} GPU-hours."


def _reason(analysis: Analysis, reason: str) -> str:
    table = analysis.table("failure_reasons")
    rows = [] if table is None else table.frame.filter(table.frame["reason"].cast(str) == reason).to_dicts()
    is_infrastructure = bool(rows) and rows[0].get("category") == _INFRASTRUCTURE
    if is_infrastructure:
        node = _largest(analysis, "failure_nodes", "machine", "failures", top_reason=reason)
        if node is not None:
            return f"Start with node {node[0]}, where {shown(int(node[1]))} attempts failed."
    top = _largest(analysis, "failures_by_user", "user", "trials", top_reason=reason)
    if top is None or is_infrastructure:
        return "See the failed jobs: gpuctl analyze LOGS --table failures."
    return f"Start with user {top[0]}, whose {shown(int(top[1]))} failed attempts failed most often for this reason."


def _node(analysis: Analysis, machine: str) -> str:
    table = analysis.table("failure_nodes")
    rows = [] if table is None else table.frame.filter(table.frame["machine"].cast(str) == machine).to_dicts()
    reason = rows[0].get("top_reason") if rows else None
    most = f"; most of its failures: {visible(str(reason))}" if reason and reason != "No signature" else ""
    return f"Drain node {visible(machine)} and test it before it gets more jobs{most}."


def _lesson(_analysis: Analysis, _about: str) -> str:
    return "Estimate the savings of each rule with their costs: gpuctl lessons LOGS."


def _policy(_analysis: Analysis, policy: str) -> str:
    return f"Consider {visible(policy)}; gpuctl policies {visible(policy)} describes it." if policy else ""


def _unfinished(_analysis: Analysis, _about: str) -> str:
    return "Compare only policies that finished the same jobs; replay more nodes or a longer period."


def _rejected(_analysis: Analysis, _about: str) -> str:
    return "Correct the export and load it again; the store keeps each rejected row with its reason."


_ADVICE: dict[str, Callable[[Analysis, str], str]] = {
    "delay_causes": _cause,
    "delay_by_size": _cause,
    "wait_by_queue": _queue,
    "wait_by_size": _gangs,
    "gpu_util_by_nodes": _spread,
    "locality_speed": _spread,
    "gpu_hours_lost": _lost,
    "idle_users": _idle,
    "failure_reasons": _reason,
    "failure_nodes": _node,
    "failure_savings": _lesson,
    "training_convergence": _lesson,
    "replay_vs_baseline": _policy,
    "replay_summary": _unfinished,
    "sources": _rejected,
}
