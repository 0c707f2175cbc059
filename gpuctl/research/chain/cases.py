"""Single pairs, each with its own start, cluster and submission: the file of ``--cases`` and its results."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from gpuctl.core.durations import clock_s
from gpuctl.core.errors import InputError
from gpuctl.core.file_io import MOST_TABLE, read_whole
from gpuctl.research.chain.baselines import PROBES, average, observe_start, reactive
from gpuctl.research.chain.episode import COLUMNS, Pair, Situation
from gpuctl.research.chain.log import check_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpuctl.research.chain.log import Log

NEEDED = ("case", "start", "cluster_nodes", "pair_nodes", "pair_limit_min", "p_submit_s", "s_submit_s")
_HINT = f"expected a header line with the columns {', '.join(NEEDED)}; s_submit_s at least 60 s after p_submit_s"
_SETS = ("limit_min", "wait_s", "elapsed_s")
_FIVE = tuple(f"p{q}" for q in (0, 25, 50, 75, 100))
STATE_COLUMNS = (
    *(
        f"{of}_{what}"
        for of in ("queued", "running")
        for what in ("jobs", "nodes", *(f"{column}_{p}" for column in _SETS for p in _FIVE))
    ),
    *(f"{of}_{what}" for of in ("p", "s") for what in ("limit_min", "nodes", "wait_s", "elapsed_s")),
)
assert len(STATE_COLUMNS) == COLUMNS  # noqa: S101 - one name per number


@dataclass(frozen=True)
class Case:
    """One line of the file.

    Attributes:
        name: name of the case.
        start: start as written in the file.
        begin_s: start in seconds since 1970 on the log's own clock.
        size: nodes of the cluster.
        pair: shape of P and S.
        p_submit_s: second of P's submission, from the start.
        s_submit_s: second of S's submission, from the start.
    """

    name: str
    start: str
    begin_s: int
    size: int
    pair: Pair
    p_submit_s: int
    s_submit_s: int

    def situation(self, log: Log) -> Situation:
        """P among the jobs of the log."""
        return Situation(log, self.begin_s, self.size, self.pair, p_submit_s=self.p_submit_s)


def read_cases(path: Path) -> list[Case]:
    """Read the file of ``--cases``.

    Raises:
        InputError: it is no such table, or a line is invalid.
    """
    try:
        text = read_whole(path, most=MOST_TABLE, hint=_HINT).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", path=str(path), hint=_HINT) from error
    rows = csv.DictReader(io.StringIO(text))
    missing = [column for column in NEEDED if column not in (rows.fieldnames or ())]
    if missing:
        raise InputError(f"lacks the columns {', '.join(missing)}", path=str(path), line=1, hint=_HINT)
    found = []
    for row in rows:
        try:
            found.append(_case(row))
        except (ValueError, TypeError) as error:
            raise InputError(f"is not a valid case: {error}", path=str(path), line=rows.line_num, hint=_HINT) from error
    if not found:
        raise InputError("has a header but no cases", path=str(path), hint=_HINT)
    return found


def _case(row: dict[str, str]) -> Case:
    numbers = {column: int(row[column]) for column in NEEDED[2:]}
    least = {**dict.fromkeys(NEEDED[2:5], 1), "p_submit_s": 0, "s_submit_s": numbers["p_submit_s"] + 60}
    for column, most in (("cluster_nodes", 10**6), ("pair_nodes", numbers["cluster_nodes"]), ("pair_limit_min", 10**6),
                         ("p_submit_s", 10**9), ("s_submit_s", 10**9)):  # fmt: skip
        if not least[column] <= numbers[column] <= most:
            raise ValueError(f"{column} is {numbers[column]}, not from {least[column]} to {most}")
    return Case(
        row["case"], row["start"], clock_s(row["start"]), numbers["cluster_nodes"],
        Pair(numbers["pair_nodes"], numbers["pair_limit_min"]), numbers["p_submit_s"], numbers["s_submit_s"],
    )  # fmt: skip


def check(log: Log, cases: Sequence[Case]) -> None:
    """Check that all jobs of the log fit the smallest cluster.

    Raises:
        InputError: some do not.
    """
    check_size(log, min(case.size for case in cases))


def run(
    log: Log, cases: Sequence[Case], progress: Callable[[str, int, int], None] = lambda *_: None
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Outcome of each case, of the baselines at each start, and a policy's input at each submission.

    Args:
        log: the trace.
        cases: cases of the file.
        progress: called with the current step, the amount done and the total.

    Returns:
        tables in the columns of `gpuctl.research.chain.case_tables`.
    """
    outcomes, states = [], []
    starts: dict[tuple[object, ...], dict[str, object]] = {}
    for done, case in enumerate(cases):
        progress("cases", done, len(cases))
        situation = case.situation(log)
        outcome = situation.outcome(situation.initial_state(), case.s_submit_s // 60)
        outcomes.append(
            {
                "case": case.name,
                "p_start_s": outcome.p_start_s,
                "p_end_s": outcome.p_end_s,
                "s_start_s": outcome.s_start_s,
                "interruption_s": outcome.interruption_s,
                "p_backfilled": int(outcome.p_backfilled),
                "s_backfilled": int(outcome.s_backfilled),
            }
        )
        for which, leaking in (("decision", False), ("stored", True)):
            state = situation.state(case.s_submit_s // 60, leaking=leaking)
            for what, numbers in (("last", state[-1]), ("sum", state.sum(axis=0))):
                row = dict(zip(STATE_COLUMNS, numbers.tolist(), strict=True))
                states.append({"case": case.name, "what": f"{which}_{what}", **row})
        key = (case.start, case.size, case.pair, case.p_submit_s)
        if key not in starts:
            starts[key] = _start(case, situation)
    return pl.DataFrame(outcomes), pl.DataFrame(list(starts.values())), pl.DataFrame(states)


def _start(case: Case, situation: Situation) -> dict[str, object]:
    at = observe_start(situation)
    return {
        "start": case.start,
        "cluster_nodes": case.size,
        "pair_nodes": case.pair.nodes,
        "pair_limit_min": case.pair.limit_min,
        "p_submit_s": case.p_submit_s,
        "first_probe_s": case.p_submit_s + 60,
        "p_end_s": at.p_end_s,
        "avg_wait_min": at.avg_wait_min,
        "queued": at.queued,
        **{f"probe{k}_s": at.probes_s[k] for k in range(PROBES)},
        "reactive_interruption_s": reactive(situation, at).interruption_s,
        "avg_interruption_s": average(situation, at).interruption_s,
    }
