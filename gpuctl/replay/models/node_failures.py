"""Failures of nodes in a replay, and what jobs keep of their work: the same for every policy of one comparison.

Each node, rack and group draws its failures from a generator of its own, in its own time, so that neither policies nor
checkpoints change them.
"""

from __future__ import annotations

import csv
import heapq
import io
import math
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import MOST_SMALL, read_whole
from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.core.numbers import lasting, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Cluster, Floats, Workload

DAY_S = 86_400.0
RECORDED = "recorded"
"""``--failures`` of this name: the outages that the trace records."""

_HINT = (
    "a rate a node-day (0.0065), RATE:weibull:SHAPE, TYPE=RATE,TYPE=RATE, recorded, a CSV with the columns "
    "time_s,node,until_s and, if wanted, kind, or a TOML file"
)
_REPAIR_HINT = "seconds (a mean; 0: at once), lognormal:MEDIAN:SIGMA, or a CSV with the columns time_s,until_s"


@dataclass(frozen=True)
class FailureOptions:
    """The options, as the command line has them, with the contents of their files.

    Attributes:
        failures: a rate, rates, `RECORDED`, or the name of a file.
        checkpoint: seconds of work between checkpoints, ``young`` or ``none``.
        write: seconds that writing one blocks its job.
        restart: seconds without progress at each start after a failure.
        detect: seconds from a failure until its jobs' other nodes are free.
        repair: how long a node is away.
        spares: nodes that stand in for others.
        requeue: how interrupted jobs queue again, ``head`` or ``tail``; "": as the policy has it.
        lemons: share of the nodes that fail more often, and how many times as often: ``0.05`` or ``0.05:8``; "": none.
        files: contents, by name.
    """

    failures: str
    checkpoint: str = "none"
    write: float = 0.0
    restart: float = 0.0
    detect: float = 0.0
    repair: str = "0"
    spares: int = 0
    requeue: str = ""
    lemons: str = ""
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """What fails together, and how often.

    Attributes:
        nodes: numbers.
        rate: failures a day.
        shape: of the Weibull distribution of the times between a repair and the next failure; 1: exponential.
        repair: how long they are away.
        key: of its random numbers.
        share: share of the nodes that each failure hits.
    """

    nodes: tuple[int, ...]
    rate: float
    shape: float
    repair: Repair
    key: tuple[int, ...]
    share: float = 1.0


@dataclass(frozen=True)
class Repair:
    """How long a node is away, in seconds.

    Attributes:
        mean: of an exponential distribution, if there are neither `median` nor `values`.
        median: of a lognormal distribution.
        sigma: its standard deviation, of logarithms.
        values: recorded ones, drawn with equal probability.
    """

    mean: float = 0.0
    median: float = 0.0
    sigma: float = 0.0
    values: tuple[float, ...] = ()

    def draw(self, of: np.random.Generator) -> float:
        """Return the seconds of one repair."""
        if self.values:
            return self.values[int(of.integers(len(self.values)))]
        if self.median > 0:
            return self.median * math.exp(self.sigma * of.standard_normal())
        return self.mean * of.standard_exponential() if self.mean > 0 else 0.0


@dataclass(frozen=True)
class NodeFailures:
    """Failures of a replay, and what each job loses by one.

    Attributes:
        sources: what fails at random.
        listed: outages (node, second, second until which), in order of time.
        every: seconds of work between checkpoints of each job; inf: it has none.
        write: seconds that writing one blocks the job.
        restart: seconds without progress at each start after a failure.
        detect: seconds until a failure is noticed.
        spares: nodes that stand in for others.
        seed: of the random numbers.
        text: the model, by name, for headings.
        requeue: how interrupted jobs queue again: ``own`` (as the policy has it), ``head`` or ``tail``.
        drains: of the listed outages (node, second) those of nodes that finish the jobs that they have.
    """

    sources: tuple[Source, ...]
    listed: tuple[tuple[int, float, float], ...]
    every: Floats
    write: float
    restart: float
    detect: float
    spares: int
    seed: int
    text: dict[str, Note]
    requeue: str = "own"
    drains: frozenset[tuple[int, float]] = frozenset()

    def outages(self, begin: float) -> Outages:
        """The outages of one replay that begins at a second."""
        return Outages(self, begin)


class Outages:
    """The outages of one replay, drawn as far as it has come.

    Args:
        failures: the model.
        begin: second of the first instant.

    Attributes:
        drawn_to: second up to which they are drawn.
        drawn: failures of nodes that were up: node, second, second until which.
        away: outages that are over.
    """

    def __init__(self, failures: NodeFailures, begin: float) -> None:
        self.failures = failures
        self.drawn_to = begin
        self.away: list[tuple[int, float, float]] = []
        self.drawn: list[tuple[int, float, float]] = []
        self._open: dict[int, tuple[float, float]] = {}
        self._streams = [self._stream(source, begin) for source in failures.sources if source.rate > 0]
        self._next = [next(stream) for stream in self._streams]
        self._listed = 0
        self._spares: list[float] = []

    def _stream(self, source: Source, begin: float) -> Iterator[tuple[float, list[tuple[int, float, float]]]]:
        """Endless failures of a source: the second, and the outages from then on."""
        of = np.random.default_rng((self.failures.seed, *source.key))
        scale = DAY_S / source.rate / math.gamma(1 + 1 / source.shape)
        now = begin
        while True:
            now += scale * float(of.weibull(source.shape))
            hit = [node for node in source.nodes if source.share >= 1 or of.random() < source.share]
            until = now + source.repair.draw(of)
            yield now, [(node, now, until) for node in hit]
            now = until

    def until(self, second: float) -> list[tuple[float, int, int]]:
        """Return what happens to nodes up to a second, in order: second, node, what.

        0: down, 1: up, 2: down and back at once, 3: takes no new jobs, those that it has go on.

        What begins before that second and lasts beyond it comes with a later call.
        """
        events: list[tuple[float, int, int]] = []
        for node, t, end in self._new(second):
            stands_in = self._stood_in(t, end)
            if node in self._open:
                since, before = self._open[node]
                if t <= before:
                    self._open[node] = since, max(before, stands_in)
                    continue
                self._close(node, events)
            drains = (node, t) in self.failures.drains
            if not drains:
                self.drawn.append((node, t, stands_in))
            if stands_in <= t and drains:
                continue
            if stands_in <= t:
                events.append((t, node, 2))
            else:
                events.append((t, node, 3 if drains else 0))
                self._open[node] = t, stands_in
        for node in [node for node, (_, end) in self._open.items() if end <= second]:
            self._close(node, events)
        self.drawn_to = second
        # at one instant nodes come up before others fail
        return sorted(events, key=lambda event: (event[0], event[2] != 1, event[1]))

    def _close(self, node: int, events: list[tuple[float, int, int]]) -> None:
        since, end = self._open.pop(node)
        self.away.append((node, since, end))
        events.append((end, node, 1))

    def _new(self, second: float) -> list[tuple[int, float, float]]:
        found = []
        for k, stream in enumerate(self._streams):
            while self._next[k][0] <= second:
                found += self._next[k][1]
                self._next[k] = next(stream)
        listed = self.failures.listed
        while self._listed < len(listed) and listed[self._listed][1] <= second:
            found.append(listed[self._listed])
            self._listed += 1
        return sorted(found, key=lambda outage: (outage[1], outage[0]))

    def _stood_in(self, t: float, end: float) -> float:
        """The second from which the place of a node is filled: by a spare, or by its repair."""
        if not self.failures.spares or end <= t:
            return end
        if len(self._spares) < self.failures.spares:
            heapq.heappush(self._spares, end)
            return t
        free = self._spares[0]
        if free >= end:
            return end
        heapq.heapreplace(self._spares, end)
        return max(free, t)

    def seen(self, end: float, emptied: Callable[[int, float], float]) -> Floats:
        """Return the outages up to a second as `Cluster.down` has them, each from when it was noticed.

        Args:
            end: the second.
            emptied: when the last job of a node that drains from a second on had ended.
        """
        still = [(node, since, until) for node, (since, until) in self._open.items()]
        late, drains = self.failures.detect, self.failures.drains
        begun = [
            (node, emptied(node, t) if (node, t) in drains else t + late, until)
            for node, t, until in [*self.away, *still]
            if t <= end
        ]
        rows = [row for row in begun if row[2] > row[1]]
        return np.array(sorted(rows, key=lambda row: (row[1], row[0])), np.float64).reshape(-1, 3)


def node_failures(options: FailureOptions, workload: Workload, cluster: Cluster, seed: int) -> NodeFailures | None:
    """Return the model of the options; None if nothing fails and nothing is saved.

    Raises:
        UsageError: an option makes no sense, or `cluster` is a pool, which has no nodes that could fail.
        InputError: a file: its name, line, what was found and expected.
    """
    sources, listed, drains = _failing(options, cluster)
    if options.lemons:
        sources = _with_lemons(options, sources, cluster, seed)
    if options.failures == RECORDED:
        down = np.zeros((0, 3)) if cluster.down is None else cluster.down
        listed = [(int(node), float(t), float(end)) for node, t, end in down.tolist()]
    fails = bool(listed) or any(source.rate > 0 for source in sources)
    checkpoint = options.checkpoint
    if not fails and checkpoint == "none" and workload.checkpoint_s is None:
        return None
    if cluster.pool and fails:
        raise UsageError("--failures: a pool has no nodes that could fail", hint="give nodes, such as --cluster 64x8")
    if not fails and cluster.down is not None:
        listed = [(int(node), float(t), float(end)) for node, t, end in cluster.down.tolist()]
    rate = _mean_rate(sources, listed, workload, len(cluster.nodes))
    listed = sorted(listed, key=lambda outage: (outage[1], outage[0]))
    return NodeFailures(
        sources=tuple(sources),
        listed=tuple(listed),
        every=_every(options, workload, cluster, rate),
        write=options.write,
        restart=options.restart,
        detect=options.detect,
        spares=options.spares,
        seed=seed,
        text=_text(options, rate),
        requeue=options.requeue or "own",
        drains=drains,
    )


LEMON_TIMES = 8.0
"""How many times as often a lemon fails, unless `FailureOptions.lemons` states it. Ours."""


def _with_lemons(options: FailureOptions, sources: Sequence[Source], cluster: Cluster, seed: int) -> list[Source]:
    """Let a share of the nodes, drawn from the seed, fail more often; the failures of all others stay the same.

    Raises:
        UsageError: the share is none, or no single node has a rate.
    """
    share_text, colon, times_text = options.lemons.partition(":")
    expected = "a share of the nodes, 0 to 1, and how many times as often they fail: 0.05 or 0.05:8"
    share = _number(share_text, "--lemon-share", expected)
    times = _number(times_text, "--lemon-share", expected, above=0.0) if colon else LEMON_TIMES
    if share > 1:
        raise UsageError(f"--lemon-share {options.lemons}: not understood", hint=f"expected {expected}")
    if not any(source.key[0] == 1 and source.rate > 0 for source in sources):
        raise UsageError(
            "--lemon-share is for rates of nodes: --failures states none", hint="--failures 0.0065, or a TOML file"
        )
    count = round(share * len(cluster.nodes))
    worst = set(np.random.default_rng((seed, 4)).permutation(len(cluster.nodes))[:count].tolist())
    return [
        replace(source, rate=times * source.rate) if source.key[0] == 1 and source.nodes[0] in worst else source
        for source in sources
    ]


def _mean_rate(
    sources: Sequence[Source], listed: Sequence[tuple[int, float, float]], workload: Workload, nodes: int
) -> float:
    """Failures per node-day; of listed ones over the time from the first submission to the last of them or of those."""
    drawn = sum(source.rate * source.share * len(source.nodes) for source in sources) / max(nodes, 1)
    if not listed:
        return drawn
    first = float(workload.submit.min(initial=math.inf))
    last = max(float(workload.submit.max(initial=0.0)), *(t for _, t, _ in listed))
    begin = min(first, *(t for _, t, _ in listed))
    return drawn + len(listed) / max(nodes * (last - begin) / DAY_S, 1e-9)


def _every(options: FailureOptions, workload: Workload, cluster: Cluster, rate: float) -> Floats:
    """Seconds of work between checkpoints of each job.

    Young: C = sqrt(2 w M), M = 1 / (nodes x rate) of the job's own nodes (Young, A first order approximation to the
    optimum checkpoint interval, CACM 1974). An interval of the job's own (`Workload.checkpoint_s`) goes first.
    """
    own = workload.checkpoint_s
    if own is not None:
        usual = _every(options, replace(workload, checkpoint_s=None), cluster, rate)
        return np.where(np.isnan(own), usual, own)
    if options.checkpoint == "none":
        return np.full(workload.size, np.inf)
    if options.checkpoint == "young":
        if options.write <= 0:
            raise UsageError(
                "--checkpoint young requires the time that writing a checkpoint takes", hint="--checkpoint-write 60"
            )
        biggest = max(int(cluster.gpus.max(initial=1)), 1)
        nodes = np.maximum(workload.gpus / biggest, 1.0)
        if rate <= 0:
            return np.full(workload.size, np.inf)
        return np.asarray(np.sqrt(2 * options.write * DAY_S / (nodes * rate)))
    return np.full(workload.size, _number(options.checkpoint, "--checkpoint", "3600, young or none", above=0.0))


def _text(options: FailureOptions, rate: float) -> dict[str, Note]:
    found = {
        "failures": note(
            "{what}; {rate} a node-day on average, repaired in {repair} s",
            what=NamedValue("value", options.failures),
            rate=literal(number(rate)),
            repair=NamedValue("value", options.repair),
        ),
        "checkpoints": note(
            "{every}, {write} to write, {detect} to notice a failure, {restart} to load",
            every=NamedValue("value", options.checkpoint),
            write=literal(lasting(options.write)),
            detect=literal(lasting(options.detect)),
            restart=literal(lasting(options.restart)),
        ),
    }
    if options.spares:
        found["spares"] = note("{spares:,} node{spares||s}", spares=options.spares)
    if options.lemons:
        share, _, times = options.lemons.partition(":")
        found["lemon nodes"] = note(
            "share {share} of the nodes, drawn from the seed: rate x {times}",
            share=NamedValue("value", share),
            times=NamedValue("value", times or number(LEMON_TIMES)),
        )
    if options.requeue:
        ways = {"head": note("with their first submission"), "tail": note("as new arrivals")}
        found["interrupted jobs"] = ways[options.requeue]
    return found


def _number(text: str, what: str, expected: str, *, above: float = -1e-300) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not above < value < math.inf:
        raise UsageError(f"{what} {text}: not understood", hint=f"expected {expected}")
    return value


def _repair(text: str, files: dict[str, str]) -> Repair:
    if text in files:
        rows = [(row["time_s"], row["until_s"]) for row in _rows(text, files[text], ("time_s", "until_s"))]
        return Repair(values=tuple(end - t for t, end in rows if math.isfinite(end)))
    if text.startswith("lognormal:"):
        median, _, sigma = text.removeprefix("lognormal:").partition(":")
        return Repair(
            median=_number(median, "--repair", _REPAIR_HINT, above=0.0), sigma=_number(sigma, "--repair", _REPAIR_HINT)
        )
    return Repair(mean=_number(text, "--repair", _REPAIR_HINT))


def _failing(
    options: FailureOptions, cluster: Cluster
) -> tuple[list[Source], list[tuple[int, float, float]], frozenset[tuple[int, float]]]:
    """What fails at random, the listed outages, and of these the drains."""
    text, repair, none = options.failures, _repair(options.repair, options.files), frozenset[tuple[int, float]]()
    if text == RECORDED:
        return [], [], none
    if text in options.files:
        if text.endswith(".toml"):
            return _of_toml(text, options.files[text], cluster, repair), [], none
        return [], *_of_csv(text, options.files[text], cluster)
    every = range(len(cluster.nodes))
    if "=" in text:
        return _by_type(text, cluster, repair), [], none
    digits, _, rest = text.partition(":")
    rate, shape = _number(digits, "--failures", _HINT), 1.0
    if rest:
        kind, _, word = rest.partition(":")
        if kind != "weibull":
            raise UsageError(f"--failures {text}: not understood", hint=f"expected {_HINT}")
        shape = _number(word, "--failures", _HINT, above=0.0)
    return [Source((node,), rate, shape, repair, (1, node)) for node in every], [], none


def _by_type(text: str, cluster: Cluster, repair: Repair) -> list[Source]:
    rates = {}
    for part in text.split(","):
        name, _, digits = part.partition("=")
        rates[name.strip().casefold()] = _number(digits, "--failures", _HINT)
    names = [name.casefold() for name in cluster.gpu_types]
    unknown = sorted(set(rates) - set(names))
    if unknown:
        raise UsageError(
            f"--failures: no node has GPUs of type {unknown[0]!r}",
            hint=f"types of this cluster: {', '.join(cluster.gpu_types) or 'none are known'}",
        )
    found = []
    for node, kind in enumerate(cluster.gpu_type.tolist()):
        rate = rates.get(names[kind], 0.0) if kind >= 0 else 0.0
        found.append(Source((node,), rate, 1.0, repair, (1, node)))
    return found


def _rows(path: str, content: str, needed: tuple[str, ...]) -> list[dict[str, Any]]:
    """The rows of a CSV of outages: seconds as numbers; no ``until_s``: for good."""
    reader = csv.DictReader(io.StringIO(content))
    missing = [name for name in needed if name not in (reader.fieldnames or [])]
    if missing:
        raise InputError(f"no column {missing[0]!r}", path=path, line=1, hint=f"expected {', '.join(needed)}")
    rows = []
    for row in reader:
        found: dict[str, Any] = dict(row)
        for name in ("time_s", "until_s"):
            word = (row.get(name) or "").strip()
            try:
                found[name] = float(word) if word or name == "time_s" else math.inf
            except ValueError:
                found[name] = math.nan
            if math.isnan(found[name]):
                raise InputError(f"{name}: {word!r} is not a number", path=path, line=reader.line_num)
        if found["until_s"] < found["time_s"]:
            raise InputError("until_s is before time_s", path=path, line=reader.line_num)
        rows.append(found)
    return rows


KINDS = ("failure", "drain")
"""How a listed outage begins: its jobs fail, or end as usual. Empty: the former."""


def _of_csv(
    path: str, content: str, cluster: Cluster
) -> tuple[list[tuple[int, float, float]], frozenset[tuple[int, float]]]:
    """The outages of a CSV, and those that are drains."""
    numbers = {name: k for k, name in enumerate(cluster.nodes)}
    found, drains = [], set()
    for line, row in enumerate(_rows(path, content, ("time_s", "node", "until_s")), 2):
        node = numbers.get((row["node"] or "").strip())
        if node is None:
            raise InputError(
                f"no node {row['node']!r} in this replay", path=path, line=line,
                hint=f"nodes are called like {cluster.nodes[0]!r}",
            )  # fmt: skip
        kind = (row.get("kind") or KINDS[0]).strip().casefold()
        if kind not in KINDS:
            raise InputError(
                f"kind: {kind!r} is none of {', '.join(KINDS)}", path=path, line=line,
                hint="failure (or empty): its jobs are interrupted; drain: it takes no new jobs",
            )  # fmt: skip
        found.append((node, row["time_s"], row["until_s"]))
        if kind == "drain":
            drains.add((node, row["time_s"]))
    return found, frozenset(drains)


def _of_toml(path: str, content: str, cluster: Cluster, repair: Repair) -> list[Source]:
    """Rates of nodes (``rate``, ``shape``, ``[nodes]``), of racks (``[rack]``) and of groups (``[[cluster]]``)."""
    try:
        data = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not valid TOML: {error}", path=path) from None
    unknown = sorted(set(data) - {"rate", "shape", "repair", "nodes", "rack", "cluster"})
    if unknown:
        raise InputError(
            f"unknown key {unknown[0]!r}", path=path, hint="known: rate, shape, repair, nodes, rack, cluster"
        )
    if "repair" in data:
        repair = _repair(str(data["repair"]), {})
    own = {str(name): _value(value, path, f"nodes.{name}") for name, value in data.get("nodes", {}).items()}
    strange = sorted(set(own) - set(cluster.nodes))
    if strange:
        raise InputError(f"nodes.{strange[0]}: no such node", path=path, hint=f"such as {cluster.nodes[0]!r}")
    rate, shape = _value(data.get("rate", 0.0), path, "rate"), _value(data.get("shape", 1.0), path, "shape")
    found = [Source((k,), own.get(name, rate), shape, repair, (1, k)) for k, name in enumerate(cluster.nodes)]
    if "rack" in data:
        of = data["rack"]
        away = _repair(str(of["until"]), {}) if "until" in of else repair
        share = _value(of.get("share", 1.0), path, "rack.share")
        for rack in range(len(cluster.racks)):
            nodes = tuple(np.flatnonzero(cluster.rack == rack).tolist())
            found.append(Source(nodes, _value(of.get("rate", 0.0), path, "rack.rate"), 1.0, away, (2, rack), share))
    for group, of in enumerate(data.get("cluster", [])):
        away = _repair(str(of["until"]), {}) if "until" in of else repair
        share = _value(of.get("share", 1.0), path, "cluster.share")
        rate = _value(of.get("rate", 0.0), path, "cluster.rate")
        found.append(Source(tuple(range(len(cluster.nodes))), rate, 1.0, away, (3, group), share))
    return found


def _value(value: object, path: str, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InputError(f"{name}: {value!r} is not a number from 0 on", path=path)
    return float(value)


def with_files(options: FailureOptions) -> FailureOptions:
    """Return the options with the contents of the files that they name.

    Raises:
        InputError: a file cannot be read.
    """
    files = {}
    for name in (options.failures, options.repair):
        path = Path(name)
        if path.suffix in {".csv", ".toml"} or (name not in {RECORDED} and path.is_file()):
            files[name] = read_whole(path, most=MOST_SMALL).decode("utf-8", "replace")
    return FailureOptions(**{**vars(options), "files": files})
