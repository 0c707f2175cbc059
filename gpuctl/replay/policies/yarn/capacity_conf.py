"""Queues of Hadoop's capacity scheduler: from capacity-scheduler.xml and yarn-site.xml, or made from quotas."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.policies.yarn.site import absolute, conf_files, properties

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpuctl.replay.policies.yarn.site import Setting

PREFIX = "yarn.scheduler.capacity."
FILES = ("yarn-site.xml", "capacity-scheduler.xml")
MOST_QUEUES = 10_000
UNLIMITED = 1 << 40
"""Applications."""

MOST_COUNT = 1e12
"""Largest number of a setting: milliseconds, MB, applications."""

_MONITOR = "yarn.resourcemanager.monitor.capacity.preemption."
_OF_QUEUE = {
    "queues", "capacity", "maximum-capacity", "state", "user-limit-factor", "minimum-user-limit-percent",
    "maximum-applications", "max-parallel-apps", "maximum-am-resource-percent", "ordering-policy",
    "ordering-policy.fair.enable-size-based-weight", "priority", "disable_preemption",
}  # fmt: skip
_OF_ALL = {
    "maximum-applications", "maximum-am-resource-percent", "resource-calculator", "node-locality-delay",
    "rack-locality-additional-delay", "rack-locality-full-reset", "max-parallel-apps",
    "per-node-heartbeat.multiple-assignments-enabled", "per-node-heartbeat.maximum-container-assignments",
    "per-node-heartbeat.maximum-offswitch-assignments", "reservations-continue-look-all-nodes",
    "schedule-asynchronously.enable", "minimum-user-limit-percent", "user-limit-factor",
}  # fmt: skip
_WITHOUT_EFFECT = ("acl_", "queue-mappings", "maximum-application-lifetime", "default-application-lifetime")
"""Settings that a replay ignores: permissions and run times of jobs are already decided."""


@dataclass(frozen=True)
class LeafOrParent:
    """A queue.

    Attributes:
        path: from ``root`` on.
        parent: number of its parent; -1 of the root.
        children: numbers, in the order of the file.
        capacity: guaranteed share of the cluster, unless ``fixed`` sets it.
        maximum: largest share of the cluster.
        fixed: absolute guarantees by resource (0 MB, 1 vcores, 2 GPUs).
        fixed_most: absolute maxima.
        percent: minimum-user-limit-percent.
        factor: user-limit-factor; -1 none.
        am: maximum-am-resource-percent; 1 is all.
        most_apps: maximum-applications.
        most_running: max-parallel-apps.
        order: ordering policy of its applications: 0 fifo, 1 fair, 2 fair with weights by size.
        respects: its children go by priorities.
        priority: among its siblings.
        no_preemption: nothing is preempted here.
        runs: its state is RUNNING.
    """

    path: str
    parent: int
    children: tuple[int, ...] = ()
    capacity: float = 1.0
    maximum: float = 1.0
    fixed: Mapping[int, float] = field(default_factory=dict)
    fixed_most: Mapping[int, float] = field(default_factory=dict)
    percent: float = 100.0
    factor: float = 1.0
    am: float = 0.1
    most_apps: int = UNLIMITED
    most_running: int = UNLIMITED
    order: int = 0
    respects: bool = False
    priority: int = 0
    no_preemption: bool = False
    runs: bool = True

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]


@dataclass(frozen=True)
class Site:
    """The content of a configuration.

    Attributes:
        queues: parents before their children, the root first.
        values: parameters of the policy `yarn-capacity` that the files set, by name.
        notes: settings that are not modelled, one line per kind.
    """

    queues: tuple[LeafOrParent, ...]
    values: Mapping[str, float | bool]
    notes: tuple[str, ...] = ()


def named_numbers(name: str, text: str, above: float = -math.inf, most: float = math.inf) -> dict[str, float]:
    """Numbers by queue or user, from ``NAME:NUMBER,NAME:NUMBER``.

    Args:
        name: of the parameter, for errors.
        text: its value.
        above: numbers must be more than this.
        most: the largest number allowed.

    Raises:
        UsageError: it is not of this form.
    """
    found = {}
    for part in filter(None, text.split(",")):
        key, _, word = part.rpartition(":")
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not above < value <= most or not math.isfinite(value) or not key.strip():
            bounds = (f" above {above:g}" if above > -math.inf else "") + (
                f" up to {most:g}" if most < math.inf else ""
            )
            raise UsageError(f"yarn-capacity: {name}={part}: expected NAME:NUMBER with a number{bounds}")
        found[key.strip()] = value
    return found


def read_site(
    conf: str, guarantees: Mapping[str, float] | None = None, maximums: Mapping[str, float] | None = None
) -> Site:
    """Read capacity-scheduler.xml, and yarn-site.xml next to it.

    Args:
        conf: files and directories, separated by colons.
        guarantees: capacities that replace the files', in their unit, by the queue's name or path; other siblings share
            the rest of 100 % in the files' proportions.
        maximums: maximum-capacity that replaces the files', in percent of the parent's.

    Raises:
        UsageError: there is no such file or queue, or guarantees are invalid.
        InputError: a file is not what it should be, or queues do not add up.
    """
    found: dict[str, Setting] = {}
    paths = conf_files(conf, FILES)
    for path in paths:
        found |= properties(path)
    if not any(name.startswith(PREFIX) for name in found):
        raise InputError(
            f"no property begins with {PREFIX}",
            path=paths[-1] if paths else None,
            hint="give capacity-scheduler.xml, or a directory with it; yarn-fair reads fair-scheduler.xml",
        )
    tree = _Tree({name[len(PREFIX) :]: one for name, one in found.items() if name.startswith(PREFIX)})
    tree.guarantees, tree.maximums = dict(guarantees or {}), dict(maximums or {})
    queues = tree.read()
    tree.check_named(queues)
    values = dict(_values(found))
    return Site(queues, values, tuple(_unmodelled(found, tree.known, queues)))


class _Tree:
    """Reads the queues of one configuration."""

    def __init__(self, settings: Mapping[str, Setting]) -> None:
        self.settings = settings
        self.known: set[str] = set()
        self.guarantees: dict[str, float] = {}
        self.maximums: dict[str, float] = {}

    def get(self, path: str, name: str, *, over_all: bool = False) -> Setting | None:
        key = f"{path}.{name}"
        self.known.add(key)
        found = self.settings.get(key)
        return self.settings.get(name) if found is None and over_all else found

    def number(
        self, path: str, name: str, default: float, least: float, most: float = math.inf, *, over_all: bool = True
    ) -> float:
        one = self.get(path, name, over_all=over_all)
        return default if one is None else one.number(least, most)

    def truth(self, path: str, name: str, default: bool) -> bool:
        one = self.get(path, name)
        return default if one is None else one.truth()

    def read(self) -> tuple[LeafOrParent, ...]:
        made = [self._queue("root", -1, None)]
        at = 0
        while at < len(made):
            queue = made[at]
            names = self._names(queue.path)
            first = len(made)
            made += [self._queue(f"{queue.path}.{name}", at, queue) for name in names]
            if len(made) > MOST_QUEUES:
                raise InputError(f"more than {MOST_QUEUES:,} queues")
            if names:
                made[at] = replace(queue, children=tuple(range(first, len(made))))
                made[first:] = self._shares(made[at], made[first:])
            at += 1
        most = self.settings.get("maximum-applications")
        in_all = 10_000 if most is None else int(most.number(0, MOST_COUNT))
        return tuple(self._limits(queue, in_all) if not queue.children else queue for queue in made)

    def _names(self, path: str) -> list[str]:
        one = self.get(path, "queues")
        names = [] if one is None else [part.strip() for part in one.text.split(",") if part.strip()]
        if one is not None and (len(set(names)) < len(names) or any("." in name for name in names)):
            raise one.wrong("names of queues, each of them once, without dots")
        if path == "root" and not names:
            raise InputError(f"{PREFIX}root.queues names no queue", hint="give the site's capacity-scheduler.xml")
        return names

    def _queue(self, path: str, parent: int, above: LeafOrParent | None) -> LeafOrParent:
        order = self.get(path, "ordering-policy")
        word = "" if order is None else order.text
        state = self.get(path, "state")
        if state is not None and state.text.upper() not in {"RUNNING", "STOPPED"}:
            raise state.wrong("RUNNING or STOPPED")
        running = state is None or state.text.upper() == "RUNNING"
        sized = self.truth(path, "ordering-policy.fair.enable-size-based-weight", False)
        if word not in {"", "fifo", "fair", "utilization", "priority-utilization"} and order is not None:
            raise order.wrong("fifo or fair; of a queue with children utilization or priority-utilization")
        return LeafOrParent(
            path=path,
            parent=parent,
            percent=self.number(path, "minimum-user-limit-percent", 100, 0, 100),
            factor=self.number(path, "user-limit-factor", 1, -1, 1e6),
            am=self.number(path, "maximum-am-resource-percent", 0.1, 0, 1),
            most_running=int(self.number(path, "max-parallel-apps", UNLIMITED, 0, MOST_COUNT, over_all=False)),
            order=(2 if sized else 1) if word == "fair" else 0,
            respects=word == "priority-utilization",
            priority=int(self.number(path, "priority", 0, -MOST_COUNT, MOST_COUNT, over_all=False)),
            no_preemption=self.truth(path, "disable_preemption", above is not None and above.no_preemption),
            runs=running and (above is None or above.runs),
        )

    def _shares(self, parent: LeafOrParent, children: list[LeafOrParent]) -> list[LeafOrParent]:
        """Guarantees and maxima of siblings: percentages, weights (``2w``) or absolute amounts."""
        texts = [self.get(child.path, "capacity") for child in children]
        kinds = {_kind(one) for one in texts if one is not None}
        first = next((one for one in texts if one is not None), None)
        if len(kinds) > 1 and first is not None:
            raise InputError(
                f"{PREFIX}{parent.path}: its children have capacities of several kinds ({', '.join(sorted(kinds))})",
                path=first.path,
                line=first.line,
                hint="give all of them as percentages, as weights (2w) or as absolute amounts ([memory=...])",
            )
        kind = next(iter(kinds), "percentages")
        numbers = [0.0 if one is None else _capacity(one) for one in texts]
        numbers = self._as_given(parent, children, numbers, kind)
        total = sum(numbers)
        if kind == "percentages" and abs(total - 100) > 0.01 and (total > 0 or parent.capacity > 0):
            raise InputError(
                f"{PREFIX}{parent.path}: the capacities of its children sum to {total:g}, expected 100",
                path=first.path if first else None,
                line=first.line if first else None,
                hint="Hadoop also refuses to start with it",
            )
        made = []
        for child, one, number in zip(children, texts, numbers, strict=True):
            part = (
                number / total if kind == "weights" and total > 0 else np.float32(np.float32(number) / np.float32(100))
            )
            capacity = float(np.float32(np.float32(parent.capacity) * np.float32(part)))
            fixed = absolute(one) if kind == "absolute amounts" and one is not None else {}
            limit = self.get(child.path, "maximum-capacity")
            most: Mapping[int, float] = {}
            maximum = parent.maximum
            if limit is not None and _kind(limit) == "absolute amounts":
                most = absolute(limit)
            elif limit is not None and (percent := limit.number(-1, 100)) >= 0:
                maximum = _of_parent(parent, percent)
            own = _named(self.maximums, child)
            if own is not None:
                most, maximum = {}, _of_parent(parent, own)
            if not fixed and not most and maximum < capacity - 1e-6:
                self._below(child, capacity, maximum, limit)
            made.append(replace(child, capacity=capacity, maximum=maximum, fixed=fixed, fixed_most=most))
        return made

    def _as_given(
        self, parent: LeafOrParent, children: list[LeafOrParent], numbers: list[float], kind: str
    ) -> list[float]:
        """Capacities overridden by a parameter; in percent, the others share the rest in proportion."""
        given = [_named(self.guarantees, child) for child in children]
        if all(one is None for one in given):
            return numbers
        if kind == "absolute amounts":
            raise UsageError(
                f"yarn-capacity: guarantees: the capacities below {parent.path} are absolute amounts",
                hint="change them in a copy of the file, and give that with --yarn-conf",
            )
        left = 100.0 - sum(one for one in given if one is not None)
        others = sum(number for one, number in zip(given, numbers, strict=True) if one is None)
        if kind == "percentages" and (left < -0.01 or (left > 0.01 and others == 0)):
            raise UsageError(
                f"yarn-capacity: guarantees: the capacities below {parent.path} sum to {100 - left:g}, not 100"
            )
        scale = left / others if kind == "percentages" and others > 0 else 1.0
        return [number * scale if one is None else one for one, number in zip(given, numbers, strict=True)]

    def _below(self, queue: LeafOrParent, capacity: float, maximum: float, limit: Setting | None) -> None:
        text = f"{queue.path} may have {100 * maximum:g} % of the cluster and is guaranteed {100 * capacity:g} %"
        if limit is None or self.guarantees or self.maximums:
            raise UsageError(f"yarn-capacity: {text}", hint="give it another maximum: maximums=NAME:PERCENT")
        raise InputError(text, path=limit.path, line=limit.line, hint="raise its maximum-capacity")

    def check_named(self, queues: tuple[LeafOrParent, ...]) -> None:
        """Check that queues named by parameters exist, once each."""
        for parameter, given in (("guarantees", self.guarantees), ("maximums", self.maximums)):
            for name in given:
                there = [queue.path for queue in queues if queue.parent >= 0 and _named({name: 0.0}, queue) is not None]
                if len(there) != 1:
                    some = ", ".join(there or [queue.path for queue in queues[1:9]])
                    raise UsageError(
                        f"yarn-capacity: {parameter}: {'several queues are' if there else 'no queue is'} called {name}",
                        hint=f"known: {some}",
                    )

    def _limits(self, leaf: LeafOrParent, in_all: int) -> LeafOrParent:
        own = self.get(leaf.path, "maximum-applications")
        most = (
            int(own.number(0, MOST_COUNT))
            if own is not None
            else int(in_all * leaf.capacity)
            if not leaf.fixed
            else in_all
        )
        return replace(leaf, most_apps=most if leaf.runs else 0)


def _named(given: Mapping[str, float], queue: LeafOrParent) -> float | None:
    """The value of a parameter for a queue, by its path or name."""
    names = (queue.path, queue.path.removeprefix("root."), queue.name)
    return next((given[name] for name in names if name in given), None)


def _of_parent(parent: LeafOrParent, percent: float) -> float:
    """A share of a parent's maximum, in single precision as in Hadoop."""
    return float(np.float32(np.float32(parent.maximum) * np.float32(np.float32(percent) / 100)))


def _kind(one: Setting) -> str:
    if one.text.startswith("["):
        return "absolute amounts"
    return "weights" if one.text.endswith("w") else "percentages"


def _capacity(one: Setting) -> float:
    if _kind(one) == "absolute amounts":
        return 0.0
    if _kind(one) == "weights":
        return replace(one, text=one.text[:-1].strip()).number(0, 1e9)
    return one.number(0, 100)


def _values(found: Mapping[str, Setting]) -> Iterable[tuple[str, float | bool]]:
    """Parameters that the files set."""
    for key, name, least, most in (
        (PREFIX + "node-locality-delay", "node_locality_delay", -1, MOST_COUNT),
        (PREFIX + "rack-locality-additional-delay", "rack_locality_additional_delay", -1, MOST_COUNT),
        (PREFIX + "per-node-heartbeat.maximum-offswitch-assignments", "offswitch", 1, MOST_COUNT),
        (PREFIX + "per-node-heartbeat.maximum-container-assignments", "batch", -1, MOST_COUNT),
        ("yarn.scheduler.minimum-allocation-mb", "minimum_mb", 0, MOST_COUNT),
        ("yarn.scheduler.minimum-allocation-vcores", "minimum_vcores", 0, MOST_COUNT),
        ("yarn.scheduler.maximum-allocation-mb", "maximum_mb", 0, MOST_COUNT),
        ("yarn.scheduler.maximum-allocation-vcores", "maximum_vcores", 0, MOST_COUNT),
        ("yarn.resource-types.yarn.io/gpu.maximum-allocation", "maximum_gpus", 0, MOST_COUNT),
        (_MONITOR + "total_preemption_per_round", "total_preemption_per_round", 0, 1),
        (_MONITOR + "max_ignored_over_capacity", "max_ignored_over_capacity", 0, MOST_COUNT),
        (_MONITOR + "natural_termination_factor", "natural_termination_factor", 0, 1),
    ):
        if key in found:
            yield name, found[key].number(least, most)
    for key, name in (
        ("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", "heartbeat"),
        (_MONITOR + "monitoring_interval", "monitoring_interval"),
        (_MONITOR + "max_wait_before_kill", "max_wait_before_kill"),
    ):
        if key in found:
            yield name, found[key].number(0 if name == "max_wait_before_kill" else 1, MOST_COUNT) / 1000.0
    for key, name in (
        ("yarn.resourcemanager.scheduler.monitor.enable", "preemption"),
        (PREFIX + "rack-locality-full-reset", "rack_locality_full_reset"),
        (PREFIX + "per-node-heartbeat.multiple-assignments-enabled", "multiple"),
        (PREFIX + "reservations-continue-look-all-nodes", "continue_look"),
    ):
        if key in found:
            yield name, found[key].truth()


def _unmodelled(found: Mapping[str, Setting], known: set[str], queues: tuple[LeafOrParent, ...]) -> Iterable[str]:
    paths = {queue.path for queue in queues}
    counts: dict[str, int] = {}
    for name in found:
        if not name.startswith(PREFIX):
            continue
        rest = name[len(PREFIX) :]
        if rest in known or rest in _OF_ALL or any(word in rest for word in _WITHOUT_EFFECT):
            continue
        path = max((p for p in paths if rest.startswith(p + ".")), key=len, default="")
        kind = rest[len(path) + 1 :] if path else rest
        if kind in _OF_QUEUE and path:
            continue
        counts[kind] = counts.get(kind, 0) + 1
    scheduler = found.get("yarn.resourcemanager.scheduler.class")
    if scheduler is not None and not scheduler.text.endswith("CapacityScheduler"):
        word = scheduler.text.rpartition(".")[2]
        yield f"yarn.resourcemanager.scheduler.class: the site runs {word}, not this scheduler"
    labels = found.get("yarn.node-labels.enabled")
    if labels is not None and labels.truth():
        counts["yarn.node-labels.enabled"] = 1
    calculator = found.get(PREFIX + "resource-calculator")
    if calculator is not None and not calculator.text.endswith("DominantResourceCalculator"):
        yield "resource-calculator: the DominantResourceCalculator is replayed, the file has another one"
    asynchronous = found.get(PREFIX + "schedule-asynchronously.enable")
    if asynchronous is None or asynchronous.truth():
        yield "schedule-asynchronously: on in this configuration (Hadoop's default); one pass per heartbeat is replayed"
    for kind in ("intra-queue-preemption.enabled", "select_based_on_reserved_containers", "observe_only"):
        key = _MONITOR + kind
        if key in found and found[key].text.lower() == "true":
            counts[kind] = counts.get(kind, 0) + 1
    for kind, count in sorted(counts.items()):
        yield f"not modelled: {kind}" + (f" ({count} times)" if count > 1 else "")
