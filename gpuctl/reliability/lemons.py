"""Nodes that fail more often than the others of their GPU type, by an exact test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.special import gammainc, pdtrik

from gpuctl.reliability.intervals import DAY
from gpuctl.reliability.rates import AGES, MONTH
from gpuctl.reliability.statistics import adjusted, at_least, binomial
from gpuctl.slurm.hostlist import expand

if TYPE_CHECKING:
    from gpuctl.reliability.facts import Facts

LEVEL, LEAST = 0.05, 3
SUSPECT, SUSPECT_LEAST = 0.2, 2
SIGNAL_P = 0.01
CLASS_NODES = 10
"""Nodes of a type and class of age that are compared among themselves."""
REPEAT_DAYS, REPAIR_H = 7, 4
CLEAR_P, CLEAR_EXPECTED = 0.2, 3
"""A repair clears a node whose outages since are no more than others', at least so many being expected."""


def table(facts: Facts) -> pl.DataFrame:
    """The rows of ``lemon_nodes``, the worst node first."""
    nodes, size = facts.nodes, facts.nodes.height
    alone = facts.incidents.filter(pl.col("node").is_not_null())
    failures = np.bincount(alone["node"].to_numpy(), minlength=size)
    own = facts.failures_of_nodes.filter(pl.col("rack_fault").is_null())
    outages = np.bincount(own["node"].to_numpy(), minlength=size)
    kind = groups(facts)
    tests = [_test(kind, count, days) for count, days in ((failures, facts.busy_days), (outages, facts.up_days))]
    gangs = gangs_of(facts)
    score = failures + gangs.share
    p = np.concatenate([_with_gangs(kind, failures, facts.busy_days, gangs, tests[0][0]), tests[1][0]])
    # without node events there are no outages to test
    q = adjusted(p).reshape(2, size) if facts.has_events else np.stack([adjusted(p[:size]), np.ones(size)])
    counts = np.stack([score, outages])
    both = p.reshape(2, size)
    best = both.argmin(axis=0)
    flagged = np.any((q <= LEVEL) & (counts >= LEAST), axis=0)
    expected = tests[0][1]
    pick = np.arange(size)
    hard = facts.xids.filter(pl.col("class") == "hardware")
    met = facts.attempts.select("node", "width", "gpus", "start_s", "end_s").filter(pl.col("node").is_not_null())
    lost = met.with_columns(gpu_h=pl.col("gpus") * (pl.col("end_s") - pl.col("start_s")) / 3600)

    def count(rows: pl.DataFrame, weights: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(rows["node"].to_numpy(), weights=weights, minlength=size)

    excluded = _excluded(facts)
    signals = {
        "xids": count(hard),
        "excluded_by": np.array([excluded.get(name, 0) for name in nodes["machine"]]),
        "repeats": count(_repeats(own)),
    }
    hinted = np.any([_stands_out(kind, values, facts.up_days) for values in signals.values()], axis=0)
    suspect = np.any((q <= SUSPECT) & (counts >= SUSPECT_LEAST), axis=0) | hinted
    verdict = np.select([flagged, suspect, 3 * expected < 1], ["yes", "suspect", "too little seen"], "no")
    power = _power(tests[1][1], 2 * size) if facts.has_events else _power(expected, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.stack([failures, outages])[best, pick] / np.stack([test[1] for test in tests])[best, pick]
    result = pl.DataFrame(
        {
            "machine": nodes["machine"],
            "gpu_type": nodes["gpu_type"],
            "lemon": verdict,
            "failures": failures,
            "gang_failures": gangs.share,
            "node_days": facts.busy_days,
            "expected": expected,
            "ratio": pl.Series(ratio).fill_nan(None),
            "p": both.min(axis=0),
            "q": q.min(axis=0),
            "evidence": np.where(best == 0, "failures", "outages"),
            "found_from_ratio": pl.Series(power).replace(float("inf"), None),
            "cleared": pl.Series(_cleared(facts, own, kind, verdict == "yes"), dtype=pl.String),
            "xids": signals["xids"],
            "outages": outages,
            "outages_expected": tests[1][1],
            "repeats": signals["repeats"],
            "excluded_by": signals["excluded_by"],
            "multi_node_failures": count(met.filter(pl.col("width") > 1)),
            "single_node_failures": count(met.filter(pl.col("width") == 1)),
            "gpu_hours_lost": count(lost, lost["gpu_h"].to_numpy()),
        }
    )
    order = pl.col("lemon").replace_strict(
        {"yes": 0, "suspect": 1, "no": 2, "too little seen": 3}, return_dtype=pl.Int8
    )
    return result.sort(order, "p", "machine")


UNIT = 48
"""Incidents are counted in parts of one: that of a gang of m nodes counts for round(UNIT / m) parts at each of them."""


@dataclass(frozen=True)
class Gangs:
    """Incidents that ended a gang and point to none of its nodes.

    Attributes:
        share: of each node: incidents of its gangs, each divided by the gang's nodes.
        parts: the same in whole parts of `UNIT`.
        met: by number of nodes of a gang and GPU type: such incidents, and of each node the chance to be in the gang of
            one.
    """

    share: np.ndarray
    parts: np.ndarray
    met: dict[tuple[int, str], tuple[int, np.ndarray]]


def gangs_of(facts: Facts) -> Gangs:
    """Collect incidents of gangs whose node nothing shows: without node events most of those by NODE_FAIL."""
    size = facts.nodes.height
    share, parts = np.zeros(size), np.zeros(size, np.int64)
    met: dict[tuple[int, str], tuple[int, np.ndarray]] = {}
    bare = facts.incidents.filter(pl.col("node").is_null() & pl.col("shared").is_null()).select("incident")
    ended = facts.attempts.filter(pl.col("width") > 1).join(bare, on="incident", how="semi")
    ended = ended.sort("incident", "row").unique("incident", keep="first", maintain_order=True)
    if ended.is_empty():
        return Gangs(share, parts, met)
    types = facts.nodes.select(node=pl.int_range(pl.len(), dtype=pl.Int64), type=pl.col("gpu_type").fill_null(""))
    held = facts.places.join(facts.attempts.filter(pl.col("width") > 1).select("row", "width"), on="row")
    held = held.join(types, on="node").with_columns(seconds=pl.col("end_s") - pl.col("start_s"))
    # types fail at rates of their own: gangs of one type alone are compared with each other
    held = held.filter(pl.col("type").n_unique().over("row") == 1)
    for (width, gpu_type), part in held.group_by("width", "type", maintain_order=True):
        of = part.join(ended.select("row"), on="row", how="semi")
        if of.is_empty():
            continue
        m = int(str(width))
        hit = np.bincount(of["node"].to_numpy(), minlength=size)
        share += hit / m
        parts += hit * max(1, round(UNIT / m))
        seconds = np.bincount(part["node"].to_numpy(), weights=part["seconds"].to_numpy(), minlength=size)
        chance = np.clip(m * seconds / max(seconds.sum(), 1e-9), 0, 1)
        met[m, str(gpu_type)] = of["row"].n_unique(), chance
    return Gangs(share, parts, met)


def _with_gangs(kind: pl.Series, failures: np.ndarray, days: np.ndarray, gangs: Gangs, alone: np.ndarray) -> np.ndarray:
    """The chance of as many incidents or more, those of gangs in parts; `alone`: without these.

    Given how many there are of each size of gang, a node's parts are a sum of binomials: its own incidents by its share
    of the busy days, those of gangs of m nodes by its share of such gangs' time. The distribution is exact.
    """
    p = alone.copy()
    sums = pl.DataFrame({"kind": kind, "k": failures, "days": days}).with_columns(
        total=pl.col("k").sum().over("kind"), share=(pl.col("days") / pl.col("days").sum().over("kind")).fill_nan(0.0)
    )
    total, own = sums["total"].to_numpy(), sums["share"].to_numpy()
    for node in np.flatnonzero(gangs.parts > 0).tolist():
        size = int(failures[node] * UNIT + gangs.parts[node])
        below = _spread_out(np.eye(1, size)[0], int(total[node]), float(own[node]), UNIT)
        for (m, _), (count, chance) in gangs.met.items():
            below = _spread_out(below, count, float(chance[node]), max(1, round(UNIT / m)))
        p[node] = min(1.0, max(0.0, 1.0 - float(below.sum())))
    return p


def _spread_out(chances: np.ndarray, count: int, share: float, unit: int) -> np.ndarray:
    """Add a binomial number of events of `unit` parts each to chances of numbers of parts, as far as these go."""
    some = binomial(np.arange(min(count, (len(chances) - 1) // unit) + 1), count, share)
    found = np.zeros(len(chances))
    for k, chance in enumerate(some.tolist()):
        found[k * unit :] += chance * chances[: len(chances) - k * unit]
    return found


def tested(kind: pl.Series, *evidence: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Whether the test finds each node, by pairs of counts and exposures."""
    counts = np.stack([count for count, _ in evidence])
    p = np.concatenate([_test(kind, *pair)[0] for pair in evidence])
    found: np.ndarray = np.any((adjusted(p).reshape(counts.shape) <= LEVEL) & (counts >= LEAST), axis=0)
    return found


def groups(facts: Facts) -> pl.Series:
    """With which others a node is compared: its GPU type, and its class of age where that has enough nodes.

    A node's class is that of its age in the middle of its time at risk.
    """
    nodes = facts.nodes
    kind = nodes["gpu_type"].fill_null("")
    installed, middle = nodes["installed_s"].to_numpy().astype(float), (nodes["since_s"].to_numpy() + facts.until) / 2
    if np.isnan(installed).any():
        return kind
    age = np.searchsorted([low for low, _ in AGES], (middle - installed) / MONTH, "right")
    both = pl.DataFrame({"kind": kind, "age": age})
    large = pl.len().over("kind", "age") >= CLASS_NODES
    return both.select(group=pl.when(large).then(pl.format("{} {}", "kind", "age")).otherwise("kind"))["group"]


def _repeats(own: pl.DataFrame) -> pl.DataFrame:
    """Outages for the same reason as the one before, within a week of its repair."""
    before = own.sort("node", "from_s").with_columns(
        last=pl.col("to_s").shift().over("node"), same=pl.col("reason") == pl.col("reason").shift().over("node")
    )
    return before.filter(pl.col("same") & (pl.col("from_s") - pl.col("last") <= REPEAT_DAYS * DAY))


def _stands_out(kind: pl.Series, count: np.ndarray, days: np.ndarray) -> np.ndarray:
    """Whether a signal is in its top hundredth and, by chance, that rare."""
    p, _ = _test(kind, count, days)
    top: np.ndarray = (count > 0) & (count >= np.quantile(count, 0.99)) & (p <= SIGNAL_P / len(count))
    return top


def _power(expected: np.ndarray, tests: int) -> np.ndarray:
    """How many times worse than its group a node must be to be found with probability one half.

    The smallest count that is flagged alone is that with p <= 0.05 / tests; a node meets it half of the time where its
    own expected count is about as large.
    """
    least = np.maximum(pdtrik(1 - LEVEL / tests, np.maximum(expected, 1e-12)) + 1, LEAST)
    with np.errstate(divide="ignore"):
        times: np.ndarray = np.where(expected > 0, np.ceil(least) / expected, np.inf)
    return times


def _cleared(facts: Facts, own: pl.DataFrame, kind: pl.Series, flagged: np.ndarray) -> list[str | None]:
    """Of nodes flagged: whether a long repair ended it, as their outages since show; None: no such repair."""
    found: list[str | None] = [None] * len(flagged)
    if not flagged.any():
        return found
    good = own.filter(~pl.Series(flagged)[own["node"]])
    rates = {}
    for name in kind.unique().to_list():
        inside = ((kind == name) & ~pl.Series(flagged)).to_numpy()
        days = float(facts.up_days[inside].sum())
        rates[name] = inside[good["node"].to_numpy()].sum() / days if days else 0.0
    replaced = pl.col("reason").str.contains(r"(?i)\brma\b|replac").fill_null(False)
    long = ~pl.col("open") & ((pl.col("to_s") - pl.col("from_s") > REPAIR_H * 3600) | replaced)
    bad = own.filter(pl.Series(flagged)[own["node"]]).sort("node", "from_s", maintain_order=True)
    for part in bad.with_columns(long=long).partition_by("node", maintain_order=True):
        node = int(part["node"][0])
        start, end, repaired = (part[name].to_numpy() for name in ("from_s", "to_s", "long"))
        first = np.searchsorted(start, end[repaired], "right")
        since = len(start) - first
        away = np.append(np.cumsum((end - start)[::-1])[::-1], 0.0)[first]
        expected = rates[kind[node]] * (facts.until - end[repaired] - away) / DAY
        # the expected number falls from repair to repair: those after the first with too few tell nothing
        few = np.flatnonzero(expected < CLEAR_EXPECTED)
        tells = slice(0, int(few[0]) if len(few) else len(expected))
        if len(expected[tells]):
            # p of so many or more at the rate of the others
            by_chance = (since == 0) | (gammainc(np.maximum(since, 1), expected) > CLEAR_P)
            found[node] = "yes" if by_chance[tells].any() else "no"
    return found


def _test(kind: pl.Series, count: np.ndarray, days: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each node the chance of as many events or more, given its type's total, and how many are expected."""
    sums = pl.DataFrame({"kind": kind, "k": count, "days": days}).with_columns(
        total=pl.col("k").sum().over("kind"), share=(pl.col("days") / pl.col("days").sum().over("kind")).fill_nan(0.0)
    )
    total, share = sums["total"].to_numpy(), sums["share"].to_numpy()
    return at_least(count, total, share), total * share


def _excluded(facts: Facts) -> dict[str, int]:
    """How many users excluded each node."""
    given = facts.options.filter(pl.col("option") == "exclude")
    users = facts.attempts.select("job", "user").join(given.select("job"), on="job", how="semi").unique("job")
    given = given.join(users, on="job")
    found: dict[str, set[str]] = {}
    for value, user in given.select("value", "user").unique().iter_rows():
        for name in _names(value):
            found.setdefault(name, set()).add(user)
    return {name: len(of) for name, of in found.items()}


def _names(value: str) -> list[str]:
    try:
        return list(expand(value))
    except ValueError:
        return []
