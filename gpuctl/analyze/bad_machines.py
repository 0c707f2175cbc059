"""Finds nodes on which more attempts fail than by chance.

The test asks: if attempts of the same user, week and size were placed on nodes at random, how often would as many
failed ones have been on this node? Given the number of failures, the number on the node is hypergeometric in each such
stratum, and the strata are independent: their distributions are convolved, which is exact (the conditional test of a
common odds ratio of 1 in 2 x 2 tables; Agresti, Categorical Data Analysis, section 7.3), and the probability of as many
or more is the one-sided p. So a user whose program always crashes, or a queue of large gangs, does not implicate a
node: if everything fails, no node has more failures than expected.

Attempts that fail together count once (`independent`). A gang counts on each of its nodes; the p of the partners of a
bad node are then low as well, and `find` clears those again. The p of all nodes, for failures at any time and for early
ones, are adjusted together after Benjamini and Hochberg (1995).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.analyze import shared_sql

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpuctl.store.database import Store

LEVEL = 0.05
"""False discovery rate: expected share of false positives among the nodes flagged."""

POWER = 0.8
"""Power at which the detectable excess is given."""

STRATUM = ("who", "week", "size_bucket", "retry")
"""Attempts are compared with those that have these in common; first attempts with no retries, for what fails is tried
again, and elsewhere."""
_SHORT = 8
"""Outcomes of a draw that is added side by side with those of others, ..."""
_ROUNDS = 4
"""... two and two, so often."""


@dataclass(frozen=True)
class Tables:
    """The 2 x 2 tables of every node, one row for each of its strata with a failure.

    Attributes:
        machine: code of the node.
        units: attempts in the stratum.
        failures: number of them that failed.
        met: number of them that ran on the node.
        seen: number of these that failed.
    """

    machine: np.ndarray
    units: np.ndarray
    failures: np.ndarray
    met: np.ndarray
    seen: np.ndarray


def build(store: Store) -> None:
    """Create ``base_machine_failures``, ``base_machine_trials``, ``base_machine_units`` and ``base_bad_machines``.

    Args:
        store: an open store with base_attempts, base_gang_machines and base_failures; it is only read.
    """
    for name in ("machine_failures", "machine_trials"):
        # every part of this text is a constant of gpuctl
        store.execute(f"CREATE OR REPLACE TEMP TABLE base_{name} AS {shared_sql.base_sql(name)}")
    # only `independent` holds the rows: of a million attempts they are a tenth of all memory
    units = independent(store.frame("FROM base_machine_trials"))
    machines = store.frame("SELECT DISTINCT unnest(machines) AS machine FROM base_machine_trials ORDER BY machine")
    store.keep("base_machine_units", units.select("number"))
    store.keep("base_bad_machines", find(units, machines["machine"].to_list()))


def independent(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the attempts that count: those that may fail for the same cause count once.

    Of a job, the first failure per reason counts: a job that crashes on every retry must not implicate three nodes. Of
    a user's attempts on the same nodes on the same day the first counts, as a sweep with one mistake is packed onto few
    nodes. The first one counts regardless of its outcome: keeping one failure and one success instead would make nodes
    with many attempts look worse.

    Args:
        rows: attempts that passed, or failed in a way that a node can cause: ``number`` (in the order of
            their jobs and attempts), ``job``, ``attempt``, ``who`` (the user), ``start_c`` (s), ``size_bucket``,
            ``machines`` (a sorted list), ``failed``, ``early``, ``reason``.

    Returns:
        The remaining rows, by start: ``number``, ``machines``, ``failed``, ``early``, ``retry`` (not the first
        attempt) and ``stratum`` (a number, equal for rows with the same `STRATUM`).
    """
    rows = rows.sort("start_c", "number")
    day = pl.col("start_c") // 86_400
    rows = rows.select(
        "number", "machines", "failed", "early", "job", "reason", _coded(rows["who"]), _coded(rows["size_bucket"]),
        day=day.cast(pl.Int64), week=(day // 7).cast(pl.Int64), retry=pl.col("attempt") > 0,
    )  # fmt: skip
    failed = rows.select("failed", "job", "reason").with_row_index("row").filter("failed")
    counts = np.ones(rows.height, bool)
    counts[failed.filter(~pl.struct("job", "reason").is_first_distinct())["row"].to_numpy()] = False
    rows = rows.drop("job", "reason").filter(counts)
    same = rows.select("who", "day", _coded(rows["machines"].list.join("\n")))
    rows = rows.filter(same.select(pl.struct(pl.all()).is_first_distinct()).to_series())
    # one integer for all four, in their order: ranks of records take ten times as long
    code = pl.lit(0, pl.Int64)
    for name in STRATUM:
        code = code * (1 + rows[name].n_unique()) + pl.col(name).rank("dense").fill_null(0).cast(pl.Int64)
    stratum = code.rank("dense").cast(pl.Int64) - 1
    return rows.select("number", "machines", "failed", "early", "retry", stratum=stratum)


def _coded(texts: pl.Series) -> pl.Series:
    """Return texts as numbers, in their order; null stays null."""
    return texts.cast(pl.Enum(texts.unique().drop_nulls().sort())).to_physical().alias(texts.name)


def find(rows: pl.DataFrame, machines: Sequence[str]) -> pl.DataFrame:
    """Test every node.

    Args:
        rows: as `independent` returns them.
        machines: the names to test, including those of the rows.

    Returns:
        One row per node, in the given order: ``machine``, ``attempts`` (that count), ``failures``, ``expected``, ``p``,
        ``early_failures``, ``early_expected``, ``early_p``, ``adjusted_p`` (the smaller of both after adjustment),
        ``bad`` (``yes``, ``no``, or ``beside NAME``: its failures are those of gangs that it shared with that node),
        ``detectable`` (as `detectable` returns it, by failures at any time; null for NaN).
    """
    met = rows.select("stratum", "failed", "early", code="machines").with_row_index("unit")
    met = met.explode("code", empty_as_null=False)
    met = met.with_columns(pl.col("code").cast(pl.Enum(machines)).to_physical())
    size = len(machines)
    attempts = np.bincount(met["code"].to_numpy(), minlength=size)
    tests = [_test(met, outcome, size) for outcome in ("failed", "early")]
    chances = np.concatenate([test.p for test in tests])
    adjusted = adjust(chances)
    verdict = np.full(size, "no", dtype=object)
    both = adjusted.reshape(2, size)
    # the largest p that the adjustment accepts: a node must still reach it without the gangs of a worse one
    limit = float(chances[adjusted <= LEVEL].max(initial=0.0))
    open_ = np.flatnonzero((both <= LEVEL).any(axis=0)).tolist()
    left = met
    p = np.stack([test.p for test in tests])
    while open_:
        worst = min(open_, key=lambda code: (p[:, code].min(), code))
        verdict[worst] = "yes"
        open_.remove(worst)
        gone = left.filter(pl.col("code") == worst)["unit"]
        left = left.filter(~pl.col("unit").is_in(gone.implode()))
        again = np.stack([_test(left, outcome, size, only=open_).p for outcome in ("failed", "early")])
        for code in tuple(open_):
            p[:, code] = again[:, code]
            if p[:, code].min() > limit:
                verdict[code] = f"beside {machines[worst]}"
                open_.remove(code)
    return pl.DataFrame(
        {
            "machine": list(machines),
            "attempts": attempts,
            "failures": tests[0].seen,
            "expected": tests[0].expected,
            "p": tests[0].p,
            "early_failures": tests[1].seen,
            "early_expected": tests[1].expected,
            "early_p": tests[1].p,
            "adjusted_p": both.min(axis=0, initial=1.0),
            "bad": pl.Series(verdict.tolist(), dtype=pl.String),
            "detectable": pl.Series(tests[0].detectable, dtype=pl.Float64, nan_to_null=True),
        },
        schema_overrides={"machine": pl.String, "attempts": pl.Int64, "failures": pl.Int64, "early_failures": pl.Int64},
    )


@dataclass(frozen=True)
class _Tested:
    """By node: failures, expected failures, the probability of as many or more, and `detectable` of the first test."""

    seen: np.ndarray
    expected: np.ndarray
    p: np.ndarray
    detectable: np.ndarray


def _test(met: pl.DataFrame, outcome: str, size: int, only: Sequence[int] | None = None) -> _Tested:
    """Test for one kind of failure; attempts that failed otherwise are left out.

    Args:
        met: one row per (counting attempt, node).
        outcome: ``failed``, or ``early``.
        size: number of nodes.
        only: the nodes of interest; None for all.
    """
    rows = met.filter(pl.col(outcome) | ~pl.col("failed")).with_columns(bad=pl.col(outcome))
    tables = contingency(rows)
    seen = np.bincount(tables.machine, weights=tables.seen, minlength=size).astype(np.int64)
    expected = np.bincount(tables.machine, weights=tables.met * tables.failures / tables.units, minlength=size)
    times = np.full(size, np.nan)
    if only is None and outcome == "failed":
        units = rows.unique("unit")
        times = detectable(tables, size, float(units["bad"].mean() or 0.0))  # type: ignore[arg-type]
    return _Tested(seen, expected, tails(tables, seen, size, only), times)


def contingency(met: pl.DataFrame) -> Tables:
    """Make the tables of the strata with a failure.

    Args:
        met: one row per (``unit``, node ``code``) with its ``stratum`` and whether it is ``bad``.
    """
    unit, code, stratum, bad = (met[name].to_numpy() for name in ("unit", "code", "stratum", "bad"))
    strata = int(stratum.max(initial=-1)) + 1
    _, first = np.unique(unit, return_index=True)
    units = np.bincount(stratum[first], minlength=strata)
    failures = np.bincount(stratum[first], weights=bad[first], minlength=strata).astype(np.int64)
    rows = failures[stratum] > 0
    own, table, runs = np.unique(
        code[rows].astype(np.int64) * strata + stratum[rows], return_inverse=True, return_counts=True
    )
    machine, which = np.divmod(own, max(1, strata))
    seen = np.bincount(table.reshape(-1), weights=bad[rows], minlength=own.size).astype(np.int64)
    return Tables(machine, units[which], failures[which], runs, seen)


def tails(tables: Tables, seen: np.ndarray, size: int, only: Sequence[int] | None = None) -> np.ndarray:
    """Return the probability of at least the observed failures, for every node; 1 without information.

    Args:
        tables: tables of all nodes.
        seen: failures in these tables, by node.
        size: number of nodes.
        only: nodes to test; None: all. The others get 1.
    """
    p = np.ones(size)
    mine = np.ones(tables.machine.size, bool) if only is None else np.isin(tables.machine, np.asarray(only, np.int64))
    for code, above, sums in _chances(tables, mine, seen, size):
        p[code] = min(1.0, float(sums[above:].sum()))
    return p


def _chances(
    tables: Tables, mine: np.ndarray, seen: np.ndarray | None, size: int
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Return by how much the failures of nodes exceed the fewest possible, and the probability of each such number.

    Args:
        tables: tables of all nodes.
        mine: the tables that count.
        seen: failures of each node; nodes with the fewest possible are left out. None: none is left out.
        size: number of nodes.
    """
    kinds, kind = _kinds(tables)
    least = np.maximum(0, kinds[:, 2] + kinds[:, 1] - kinds[:, 0])
    densities = _densities(kinds, least)
    # each kind of table once per node, with its multiplicity
    pairs, counts = np.unique(tables.machine[mine] * len(kinds) + kind[mine], return_counts=True)
    machine, which = np.divmod(pairs, max(1, len(kinds)))
    above = np.zeros(size, np.int64)
    if seen is not None:
        above = seen - np.bincount(machine, weights=least[which] * counts, minlength=size).astype(np.int64)
        # the others carry no information: their failures are the fewest possible
        observed = above[machine] > 0
        machine, which, counts = machine[observed], which[observed], counts[observed]
    powers, power = np.unique(which * (int(counts.max(initial=0)) + 1) + counts, return_inverse=True)
    most = int(counts.max(initial=0)) + 1
    draws = [_power(densities[key // most], key % most) for key in powers.tolist()]
    for code, sums in _summed(machine, power.reshape(-1), draws):
        yield code, int(above[code]), sums


def detectable(tables: Tables, size: int, rate: float) -> np.ndarray:
    """Return the ratio of failure rates at which a node would be called bad with probability `POWER`.

    If a failure's odds on it are r times those elsewhere, k failures become r^k times as likely, for each k (sums of
    Fisher's noncentral hypergeometric distributions). It is called bad if k failures are as unlikely by chance as the
    adjustment requires for one node among all.

    Args:
        tables: tables of all nodes.
        size: number of nodes.
        rate: share of all attempts that failed: it converts odds to rates.

    Returns:
        by node; NaN: its attempts are too few to detect any rate.
    """
    times = np.full(size, np.nan)
    odds = np.exp(np.linspace(0.0, np.log(1000.0), 400))
    for code, _, sums in _chances(tables, np.ones(tables.machine.size, bool), None, size):
        rare = np.flatnonzero(np.cumsum(sums[::-1])[::-1] <= LEVEL / (2 * size))
        if not rare.size:
            continue
        # the probability grows with the odds
        at = bisect_left(odds, True, key=partial(_is_shown, sums, int(rare[0])))
        if at < odds.size:
            times[code] = odds[at] / (1 - rate + rate * odds[at])
    return times


def _is_shown(sums: np.ndarray, rare: int, odds: float) -> bool:
    """Return whether a node with odds `odds` times the others' has at least `rare` failures with power `POWER`."""
    with np.errstate(divide="ignore"):
        logs = np.log(sums) + np.log(odds) * np.arange(sums.size)
    weights = np.exp(logs - logs.max())
    return bool(weights[rare:].sum() >= POWER * weights.sum())


def _kinds(tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """Return the kinds of tables (units, failures, met), ascending, and the number of each table's kind."""
    rows = np.stack([tables.units, tables.failures, tables.met], axis=1).reshape(-1, 3)
    # np.unique of rows compares bytes and takes thirty times as long
    order = np.lexsort(rows.T[::-1])
    rows = rows[order]
    first = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)]
    kind = np.empty(len(rows), np.int64)
    kind[order] = np.cumsum(first) - 1
    return rows[first], kind


def _summed(owner: np.ndarray, which: np.ndarray, draws: list[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
    """Return the distribution of the sum of independent draws, for every owner.

    Most draws have two or three outcomes: those of all owners are added in parallel, pair by pair, until few are left,
    since a call of NumPy costs more than such a sum.

    Args:
        owner: owner of each draw, ascending.
        which: the distribution of each draw, a number in `draws`.
        draws: distributions, from the least outcome on.
    """
    lengths = np.array([draw.size for draw in draws], np.int64)
    order = np.lexsort((lengths[which], owner))
    owner, length = owner[order], lengths[which][order]
    short = length <= _SHORT
    left: dict[int, list[np.ndarray]] = {code: [] for code in np.unique(owner).tolist()}
    for code, key in zip(owner[~short].tolist(), which[order][~short].tolist(), strict=True):
        left[code].append(draws[key])
    table = np.zeros((len(draws), _SHORT))
    for key in np.flatnonzero(lengths <= _SHORT).tolist():
        table[key, : lengths[key]] = draws[key]
    for code, sums in _side_by_side(owner[short], table[which[order][short]], length[short]):
        left[code].append(sums)
    for code, parts in left.items():
        while len(parts) > 1:
            parts.sort(key=len)
            pairs = zip(parts[::2], parts[1::2], strict=False)
            parts = [*(_convolved(*pair) for pair in pairs), *(parts[-1:] if len(parts) % 2 else [])]  # noqa: PLW2901
        yield code, parts[0]


def _side_by_side(owner: np.ndarray, rows: np.ndarray, length: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Add distributions of one owner pairwise, `_ROUNDS` times; an odd one is returned unchanged.

    Args:
        owner: owner of each distribution, ascending.
        rows: the distributions, filled up with zeros.
        length: outcomes of each.
    """
    for _ in range(_ROUNDS):
        second = (np.arange(owner.size) - np.searchsorted(owner, owner)) % 2 == 1
        width = int(length.max(initial=1))
        rows = rows[:, :width]
        one, other = rows[np.flatnonzero(second) - 1], rows[second]
        sums = np.zeros((len(one), 2 * width - 1))
        for outcome in range(width):
            sums[:, outcome : outcome + width] += one * other[:, outcome : outcome + 1]
        alone = ~second & ~np.append(second[1:], False)[: second.size]
        yield from _cut(owner[alone], rows[alone], length[alone])
        owner, rows, length = owner[second], sums, length[second] + length[np.flatnonzero(second) - 1] - 1
    yield from _cut(owner, rows, length)


def _cut(owner: np.ndarray, rows: np.ndarray, length: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    for code, row, size in zip(owner.tolist(), rows, length.tolist(), strict=True):
        yield code, row[:size]


def adjust(p: np.ndarray) -> np.ndarray:
    """Adjust p-values for their number, after Benjamini and Hochberg (1995)."""
    order = np.argsort(p)
    adjusted = np.empty(p.size)
    ranked = p[order] * (p.size / np.arange(1, p.size + 1))
    adjusted[order] = np.minimum.accumulate(ranked[::-1])[::-1]
    return np.clip(adjusted, 0.0, 1.0)


def _densities(kinds: np.ndarray, least: np.ndarray) -> list[np.ndarray]:
    """Return the probabilities of each number of failures, from `least` on, for every kind of table.

    Each follows from its neighbour by a ratio of integers, from the most likely number outwards, and they sum to 1:
    exact except for rounding, and computed without scipy, which takes longer to import than all this.
    """
    units, failures, met = kinds.T
    most = np.minimum(failures, met)
    ends = np.cumsum(most - least + 1)
    begins = ends - (most - least + 1)
    mode = np.clip((failures + 1) * (met + 1) // (units + 2), least, most)
    weights = np.ones(int(ends[-1]) if ends.size else 0)
    for step, last in ((1, most), (-1, least)):
        going, count = np.flatnonzero(mode != last), mode.copy()
        while going.size:
            low = np.minimum(count[going], count[going] + step)  # ratio of the next number's probability to this one's
            n, k, m = units[going], failures[going], met[going]
            ratio = (k - low) * (m - low) / ((low + 1) * (n - k - m + low + 1))
            here = begins[going] + count[going] - least[going]
            weights[here + step] = weights[here] * (ratio if step > 0 else 1 / ratio)
            count[going] += step
            going = going[count[going] != last[going]]
    return [part / part.sum() for part in np.split(weights, ends[:-1])] if ends.size else []


def _convolved(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Convolve without np.convolve's checks, which take as long as the sums: a million jobs need half a million."""
    long, short = (one, other) if one.size >= other.size else (other, one)
    return np.correlate(long, short[::-1], "full")


def _power(density: np.ndarray, count: int) -> np.ndarray:
    """Return the distribution of the sum of `count` draws, at least one."""
    result, square = None, density
    while count:
        if count & 1:
            result = square if result is None else _convolved(result, square)
        count >>= 1
        if count:
            square = _convolved(square, square)
    return density if result is None else result
