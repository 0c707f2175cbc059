"""The screen of ``gpuctl replay``: the policies side by side, the effect of each, and its certainty."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpuctl.core.numbers import MISSING, number, timed
from gpuctl.core.storable_text import plural
from gpuctl.reports.cell_text import shown
from gpuctl.reports.screens.model import Grid, Head, Line, Screen, Sentences, Strip, Strips
from gpuctl.reports.screens.words import ORACLE, briefly, clipped, filtered, known, oracles, rows, stated, windowed
from gpuctl.reports.standout import findings
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.numbers import Unit
    from gpuctl.core.results import Analysis
    from gpuctl.reports.screens.model import Block
    from gpuctl.reports.screens.words import ORACLE, Row, oracles
    from gpuctl.reports.standout import Finding

LINES = 25
"""The screen has no more lines."""
TABLES = (
    "replay_summary", "replay_vs_baseline", "replay_timeline", "replay_vs_recorded", "replay_vs_unchanged",
    "replay_fidelity", "replay_failures",
)  # fmt: skip
"""The tables that the screen is made from."""
_SENTENCES = 4
_WAITED = " deferrable jobs completed in leftover capacity: "


def screen(analysis: Analysis, warnings: Sequence[str] = ()) -> Screen:
    """Return the screen of a replay.

    Args:
        analysis: its tables.
        warnings: further caveats on the jobs and policies.
    """
    found = [one for one in findings(analysis) if one.rule != "a policy knows true run times"][:_SENTENCES]
    policies = rows(analysis, "replay_summary")
    blocks: list[Block | None] = [
        filtered(analysis),
        windowed(analysis),
        _policies(analysis, policies),
        _strips(analysis, policies),
        Sentences("What stands out", tuple(one.text for one in found), least=2),
        *_unchanged(analysis),
        _nearness(analysis),
        _recorded(analysis),
        _failures(analysis),
        _deadlines(policies),
        *(Line("Deferrable", text, lines=3) for text in _deferrable(analysis, warnings)[:2]),
        oracles(policies),
        _caveats(analysis, policies, warnings),
        _next(policies),
    ]
    there = tuple(block for block in blocks if block is not None)
    return Screen(_title(analysis), "", there, LINES, _notes(analysis, found, warnings))


def _title(analysis: Analysis) -> str:
    chosen = analysis.settings
    return (
        f"{clipped(chosen.get('workload', analysis.cluster), 48)}, replayed on {clipped(chosen.get('cluster', ''), 48)}"
    )


def _policies(analysis: Analysis, policies: Sequence[Row]) -> Grid:
    changes = {
        row["policy"]: row
        for row in rows(analysis, "replay_vs_baseline")
        if row["measure"] == "wait" and row["size_bucket"] == "all"
    }
    unit = Units(analysis.tables).waits()
    change = [Head("change", "95 % interval", right=False)] if changes else []
    heads = (
        Head("Policy", unit.name, right=False), Head("wait"), Head("p95"), *change, Head("JCT"), Head("util %"),
        Head("preempted"),
    )  # fmt: skip
    baseline = next((str(row["baseline"]) for row in changes.values()), None)
    cells = []
    for row in policies:
        own = [clipped(row["policy"], 16) + (ORACLE if row["oracle"] else "")]
        own += [timed(row[column], unit) for column in ("wait_mean_s", "wait_p95_s")]
        own += (
            [_change(changes.get(row["policy"]), is_baseline=baseline == row["policy"], unit=unit)] if changes else []
        )
        own += [timed(row["jct_mean_s"], unit), shown(row["utilization_pct"], "%"), shown(row["preemptions"])]
        cells.append(tuple(own))
    return Grid(heads, tuple(cells), "... and {count} more: --table replay_summary", least=4)


def _change(row: Row | None, *, is_baseline: bool, unit: Unit) -> str:
    if is_baseline:
        return "baseline"
    if row is None or not known(row["diff_mean_s"]):
        return MISSING
    mean = _signed(row["diff_mean_s"], unit)
    if not known(row["diff_low_s"]):
        return f"{mean} (too short to tell)"
    return f"{mean} ({_signed(row['diff_low_s'], unit)} to {_signed(row['diff_high_s'], unit)})"


def _signed(value: float, unit: Unit) -> str:
    text = timed(abs(value), unit)
    return text if text == "0" else f"{'-' if value < 0 else '+'}{text}"


def _strips(analysis: Analysis, policies: Sequence[Row]) -> Strips | None:
    """Return jobs waiting under the baseline and the best usable policy; for a single policy, GPUs in use and jobs."""
    names = [row["policy"] for row in policies]
    timeline = [row for row in rows(analysis, "replay_timeline") if known(row["t_s"]) and known(row["t_end_s"])]
    if not names or not timeline:
        return None
    compared = _compared(analysis, policies)
    if len(compared) > 1:
        wanted = [(f"Waiting, {clipped(name, 16)}", name, "waiting_jobs") for name in compared]
    else:
        wanted = [("GPUs in use", names[0], "gpus_busy"), ("Jobs waiting", names[0], "waiting_jobs")]
    shown_of = {(name, column) for _, name, column in wanted}
    tops: dict[str, float] = {}
    for row in timeline:
        for name, column in shown_of:
            if row["policy"] == name and known(row[column]):
                tops[column] = max(tops.get(column, 0.0), row[column])
    strips = []
    for label, name, column in wanted:
        own = [row for row in timeline if row["policy"] == name]
        spans = tuple((row["t_s"], row["t_end_s"], row[column]) for row in own)
        if tops.get(column, 0.0) > 0 and spans:
            most = max((row[column] for row in own if known(row[column])), default=0.0)
            strips.append(Strip(label, spans, tops[column], f"max {number(most, 'jobs')}"))
    low = min(row["t_s"] for row in timeline)
    high = max(row["t_end_s"] for row in timeline)
    if not strips or not math.isfinite(high - low) or high <= low:
        return None
    return Strips(tuple(strips), low, high, calendar=False)


def _compared(analysis: Analysis, policies: Sequence[Row]) -> list[str]:
    """Return the baseline, and the policy with the shortest mean wait, preferably one that can be used as it is."""
    others = rows(analysis, "replay_vs_baseline")
    if not others:
        return []
    baseline = others[0]["baseline"]
    waited = [row for row in policies if known(row["wait_mean_s"]) and row["policy"] != baseline]
    usable = [row for row in waited if not row["oracle"] and not row["preemptions"]]
    best = min(usable or waited, key=lambda row: row["wait_mean_s"], default=None)
    return [baseline, *([best["policy"]] if best is not None else [])]


def _recorded(analysis: Analysis) -> Line | None:
    """Return the distance of the replay to the trace, if requested."""
    found = [
        row
        for row in rows(analysis, "replay_vs_recorded")
        if row["measure"] == "wait" and row["size_bucket"] == "all" and known(row["diff_mean_s"])
    ]
    unit = Units(analysis.tables).waits()
    warnings = [
        f"{clipped(row['policy'], 16)} {timed(row['mean_s'], unit)}, {_change(row, is_baseline=False, unit=unit)}"
        for row in found
    ]
    if not warnings:
        return None
    recorded = timed(found[0]["baseline_mean_s"], unit)
    return Line("Recorded", f"mean wait {recorded} {unit.name}; replayed: {'; '.join(warnings)}", lines=2)


def _unchanged(analysis: Analysis) -> list[Line]:
    """Return the effect of a change on each policy's mean wait."""
    unit = Units(analysis.tables).waits()
    warnings = [
        f"{clipped(row['policy'], 16)}, mean wait {timed(row['mean_s'], unit)}, unchanged "
        f"{timed(row['baseline_mean_s'], unit)} {unit.name}: {_change(row, is_baseline=False, unit=unit)}"
        for row in rows(analysis, "replay_vs_unchanged")
        if row["measure"] == "wait" and row["size_bucket"] == "all" and known(row["diff_mean_s"])
    ]
    changes = analysis.settings.get("changes", "")
    return [Line("Change", f"{changes}: {'; '.join(warnings)}", lines=3)] if warnings else []


def _failures(analysis: Analysis) -> Line | None:
    """What failures of nodes cost under each policy."""
    found = [
        f"{clipped(row['policy'], 16)} {plural(row['interruptions'], 'interruption')}, "
        f"{number(row['lost_gpu_hours'], 'GPU-h')} GPU-hours lost, ETTR {shown(row['ettr'])} "
        f"({shown(row['ettr_running'])} while running)"
        for row in rows(analysis, "replay_failures")
    ]
    return Line("Failures", "; ".join(found), lines=3) if found else None


def _deadlines(policies: Sequence[Row]) -> Line | None:
    """How many deadlines of the input each policy meets, if the input has some."""
    found = [
        f"{clipped(row['policy'], 16)} {shown(row['deadlines_met'])} met, {shown(row['deadlines_missed'])} missed"
        + (f" ({shown(row['deadlines_declined'])} declined)" if row["deadlines_declined"] else "")
        for row in policies
        if known(row.get("deadlines")) and row["deadlines"]
    ]
    return Line("Deadlines", "; ".join(found), lines=3) if found else None


def _nearness(analysis: Analysis) -> Line | None:
    """Return the distance of the replay to the trace under the trace's own rules."""
    warnings = analysis.settings.get("fidelity")
    return None if warnings is None else Line("Fidelity", warnings, lines=3)


def _caveats(analysis: Analysis, policies: Sequence[Row], warnings: Sequence[str]) -> Line | None:
    left = {row["policy"]: row["jobs"] - row["jobs_finished"] - row.get("jobs_cut", 0) for row in policies}
    own = _deferrable(analysis, warnings)
    others = [text for text in _known_once(analysis, warnings) if text not in own]
    elsewhere = stated(analysis)
    texts = [text for text in others if not text.startswith("Oracles, which know") and text not in elsewhere]
    unfinished = sum(count for count in left.values() if count > 0)
    if unfinished:
        texts = [f"{plural(unfinished, 'job')} did not finish", *texts]
    return briefly(texts)


def _deferrable(analysis: Analysis, warnings: Sequence[str]) -> list[str]:
    """Return a policy's statement on deferrable work: an answer, not a caveat."""
    return [text for text in _known_once(analysis, warnings) if _WAITED in text]


def _known_once(analysis: Analysis, warnings: Sequence[str]) -> list[str]:
    return list(dict.fromkeys((*analysis.warnings, *warnings)))


def _next(policies: Sequence[Row]) -> Line:
    more = "--scale-load 1.2" if len(policies) > 1 else "--policy A,B"
    return Line("Next", f"--table replay_by_size, --all, --html FILE, {more}")


def _notes(analysis: Analysis, found: Sequence[Finding], warnings: Sequence[str]) -> tuple[tuple[str, str], ...]:
    notes = [("Caveat", text) for text in _known_once(analysis, warnings)]
    notes += [
        ("wait, p95, JCT", "mean wait, its 95th percentile, and mean time from submission to end, over finished jobs"),
        ("util", "GPU-hours held over GPU-hours available during the measured time, which differs between policies"),
        ("change", f"mean difference in wait per job; {analysis.settings.get('intervals', '')}"),
    ]
    for name in TABLES:
        table = analysis.table(name)
        if table is not None:
            notes.append((f"{table.title} (table {name})", " ".join((table.population, *table.notes))))
    notes += [(f"Setting: {key}", value) for key, value in analysis.settings.items()]
    notes += [(f"Why this stands out (table {one.table})", one.rule) for one in found]
    return tuple(notes)
