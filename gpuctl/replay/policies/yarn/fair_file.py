"""Hadoop's fair-scheduler.xml: queues and their limits, and the settings of yarn-site.xml next to it.

As the FairScheduler of Hadoop 3.5.0 reads them (FairScheduler.md, "Configuration"; classes AllocationFileParser,
AllocationFileQueueParser, FairSchedulerConfiguration).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.policies.yarn.site import Setting, conf_files, properties, root_of, walk

if TYPE_CHECKING:
    from collections.abc import Mapping

FILES = ("yarn-site.xml", "fair-scheduler.xml")
PREFIX = "yarn.scheduler.fair."

_NAMES = {"memory-mb": 0, "vcores": 1, "yarn.io/gpu": 2}
_OLD_PARTS = re.compile(r"-?\d+(?:\.\d*)?\s*(?:mb|vcores)")
_OLD = re.compile(r"(\d+)(?:\.\d*)?\s*(mb|vcores)")
_PERCENT = re.compile(r"(\d+(?:\.\d*)?)\s*%\s*(memory|cpu|)")
_DEFAULTS = {
    "defaultQueueSchedulingPolicy", "defaultQueueSchedulingMode", "queueMaxResourcesDefault", "userMaxAppsDefault",
    "defaultFairSharePreemptionTimeout", "fairSharePreemptionTimeout", "defaultMinSharePreemptionTimeout",
    "queueMaxAppsDefault", "defaultFairSharePreemptionThreshold", "queueMaxAMShareDefault",
}  # fmt: skip
_OF_QUEUES = {
    "minResources", "maxResources", "maxChildResources", "maxRunningApps", "maxAMShare", "weight",
    "minSharePreemptionTimeout", "fairSharePreemptionTimeout", "fairSharePreemptionThreshold", "schedulingPolicy",
    "schedulingMode", "allowPreemptionFrom",
}  # fmt: skip
_WITHOUT_EFFECT = {
    "aclSubmitApps", "aclAdministerApps", "aclAdministerReservations", "aclListReservations", "aclSubmitReservations",
}  # fmt: skip


@dataclass(frozen=True)
class Amount:
    """MB of memory, vcores and GPUs: whole numbers, inf unbounded; or shares of the cluster."""

    parts: tuple[float, float, float]
    relative: bool = False


@dataclass(frozen=True)
class QueueConf:
    """A queue of the file; absent settings are None.

    Attributes:
        name: full name, such as ``root.a.b``.
        parent: whether it holds other queues, or is declared as a parent.
        weight: its weight.
        least: ``minResources``.
        most: ``maxResources``.
        child_most: ``maxChildResources``: of queues that are made under it.
        apps: ``maxRunningApps``.
        masters: ``maxAMShare``; -1 unbounded.
        policy: fifo, fair or drf.
        min_wait, fair_wait: seconds.
        threshold: ``fairSharePreemptionThreshold``.
        victims: ``allowPreemptionFrom``.
    """

    name: str
    parent: bool = False
    weight: float = 1.0
    least: Amount | None = None
    most: Amount | None = None
    child_most: Amount | None = None
    apps: float | None = None
    masters: float | None = None
    policy: str | None = None
    min_wait: float | None = None
    fair_wait: float | None = None
    threshold: float | None = None
    victims: bool = True


@dataclass(frozen=True)
class Allocations:
    """The content of fair-scheduler.xml.

    Attributes:
        queues: in the order of the file, a parent before its children; includes the root if it is declared.
        policy: ``defaultQueueSchedulingPolicy``.
        most: ``queueMaxResourcesDefault``.
        apps: ``queueMaxAppsDefault``.
        user_apps: ``userMaxAppsDefault``.
        of_users: ``maxRunningApps`` of users.
        masters: ``queueMaxAMShareDefault``.
        min_wait, fair_wait: seconds, default time-outs; inf never.
        threshold: ``defaultFairSharePreemptionThreshold``.
        left_out: unmodelled settings, with their counts.
    """

    queues: tuple[QueueConf, ...] = ()
    policy: str = "fair"
    most: Amount | None = None
    apps: float = math.inf
    user_apps: float = math.inf
    of_users: Mapping[str, float] = field(default_factory=dict)
    masters: float = 0.5
    min_wait: float = math.inf
    fair_wait: float = math.inf
    threshold: float = 0.5
    left_out: Mapping[str, int] = field(default_factory=dict)


def read_amount(setting: Setting, missing: float) -> Amount:
    """An amount of resources: ``memory-mb=8192, vcores=4``, ``8192 mb, 4 vcores``, ``25%`` or ``25% memory, 50% cpu``.

    Args:
        setting: the text and its origin.
        missing: value of resources not named in the first form: 0 for a minimum, inf for a maximum.

    Returns:
        the amount; resources unknown to a replay are left out.

    Raises:
        InputError: it is none of these.
    """
    text = setting.text.lower()
    expected = "an amount of resources, as 'memory-mb=8192, vcores=4, yarn.io/gpu=2', '8192 mb, 4 vcores' or '25%'"
    if "=" in text:
        return _by_name(setting, text, missing, expected)
    if "%" in text:
        parts = [_PERCENT.fullmatch(part.strip()) for part in text.split(",")]
        found = {part[2]: float(part[1]) / 100.0 for part in parts if part is not None}
        if len(parts) == 1 and "" in found:
            return Amount((found[""],) * 3, relative=True)
        if not {"memory", "cpu"} <= set(found):
            raise setting.wrong(expected)
        # GPUs are not named in this form: Hadoop then allows none
        return Amount((found["memory"], found["cpu"], 0.0), relative=True)
    parts_of = text.split(",") if text.count(",") == 1 else _OLD_PARTS.findall(text)
    there = {m[2]: float(m[1]) for m in (_OLD.search(part) for part in parts_of) if m is not None}
    if len(parts_of) != 2 or set(there) != {"mb", "vcores"} or "-" in text:
        raise setting.wrong(expected)
    return Amount((there["mb"], there["vcores"], 0.0))


def _by_name(setting: Setting, text: str, missing: float, expected: str) -> Amount:
    relative = "%" in text
    values = [1.0 if relative else missing] * 3
    for part in text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        match = _PERCENT.fullmatch(value) if relative else re.fullmatch(r"\d+", value)
        if not name or match is None:
            raise setting.wrong(expected)
        if name in _NAMES:
            values[_NAMES[name]] = float(match[1]) / 100.0 if relative else float(match[0])
    return Amount((values[0], values[1], values[2]), relative)


def _policy(setting: Setting) -> str:
    # a class may be named in full; Hadoop's own end as their short names do
    word = setting.text.rpartition(".")[2].lower()
    known = {"fair": "fair", "fifo": "fifo", "drf": "drf", "fairsharepolicy": "fair", "fifopolicy": "fifo",
             "dominantresourcefairnesspolicy": "drf"}  # fmt: skip
    if word not in known:
        raise setting.wrong("fair, fifo or drf: policies of your own are not modelled")
    return known[word]


class _Reader:
    """Builds the content of an allocation file from the callbacks of `walk`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.queues: dict[str, dict[str, object]] = {}
        self.defaults: dict[str, Setting] = {}
        self.users: dict[str, float] = {}
        self.left_out: dict[str, int] = {}
        self.tops: list[str] = []
        self._open: list[tuple[str, str]] = []
        self._skip = 0

    def begin(self, tag: str, attributes: Mapping[str, str], line: int) -> None:
        """Handle the start of an element."""
        if not self._open:
            if tag != "allocations":
                raise InputError(f"its outermost element is <{tag}>, expected <allocations>", path=self.path, line=line)
            self._open.append((tag, ""))
            return
        if self._skip:
            self._skip += 1
            return
        above, name = self._open[-1]
        if tag in {"queue", "pool"} and above in {"allocations", "queue"}:
            self._open.append(("queue", self._queue(name, attributes, line)))
        elif tag == "user" and above == "allocations":
            self._open.append((tag, attributes.get("name", "").strip()))
        elif above == "allocations" and tag not in _DEFAULTS:
            self._leave_out(tag)
        elif above == "queue" and tag not in _OF_QUEUES:
            if tag not in _WITHOUT_EFFECT:
                self._leave_out(tag)
            else:
                self._skip = 1
        else:
            self._open.append((tag, name))

    def _leave_out(self, tag: str) -> None:
        self.left_out[tag] = self.left_out.get(tag, 0) + 1
        self._skip = 1

    def _queue(self, above: str, attributes: Mapping[str, str], line: int) -> str:
        name = attributes.get("name", "").strip()
        if not name or "." in name:
            raise InputError(
                f"a queue is named {name!r}: expected a name without a full stop", path=self.path, line=line
            )
        if not above:
            full = "root" if name.lower() == "root" else f"root.{name}"
            self.tops.append(full)
        else:
            full = f"{above}.{name}"
            self.queues[above]["parent"] = True
        if full in self.queues:
            raise InputError(f"queue {full} occurs twice", path=self.path, line=line)
        self.queues[full] = {"name": full, "parent": attributes.get("type") == "parent"}
        return full

    def end(self, tag: str, text: str, line: int) -> None:
        """Handle the end of an element."""
        if self._skip:
            self._skip -= 1
            return
        _, name = self._open.pop()
        if tag in {"queue", "pool", "allocations", "user"}:
            return
        above = self._open[-1][0]
        setting = Setting(f"<{tag}>", text, self.path, line)
        if above == "allocations":
            self.defaults[tag] = setting
        elif above == "user":
            if tag == "maxRunningApps":
                self.users[name] = float(int(setting.number(least=0)))
        else:
            self._of_queue(self.queues[name], tag, setting)

    def _of_queue(self, queue: dict[str, object], tag: str, setting: Setting) -> None:
        if tag == "minResources":
            queue["least"] = read_amount(setting, 0.0)
            if read_amount(setting, 0.0).relative:
                raise setting.wrong("an absolute amount: Hadoop reads no share of the cluster as a minimum")
        elif tag == "maxResources":
            queue["most"] = read_amount(setting, math.inf)
        elif tag == "maxChildResources":
            queue["child_most"] = read_amount(setting, math.inf)
        elif tag == "maxRunningApps":
            queue["apps"] = float(int(setting.number(least=0)))
        elif tag == "maxAMShare":
            queue["masters"] = min(setting.number(), 1.0)
        elif tag == "weight":
            queue["weight"] = setting.number(least=0, most=1e9)
        elif tag == "minSharePreemptionTimeout":
            queue["min_wait"] = setting.number(least=0)
        elif tag == "fairSharePreemptionTimeout":
            queue["fair_wait"] = setting.number(least=0)
        elif tag == "fairSharePreemptionThreshold":
            queue["threshold"] = min(max(setting.number(), 0.0), 1.0)
        elif tag == "allowPreemptionFrom":
            queue["victims"] = setting.text.lower() == "true"
        else:
            queue["policy"] = _policy(setting)


def read_allocations(path: str) -> Allocations:
    """Read an allocation file.

    Raises:
        InputError: it cannot be read, is not an allocation file, or has an invalid value.
    """
    reader = _Reader(path)
    walk(path, reader.begin, reader.end)
    of, queues = reader.defaults, [QueueConf(**queue) for queue in reader.queues.values()]  # type: ignore[arg-type]
    if "root" in reader.tops and len(reader.tops) > 1:
        raise InputError("declares the root and other queues next to it", path=path)
    wait = of.get("defaultFairSharePreemptionTimeout", of.get("fairSharePreemptionTimeout"))
    policy = of.get("defaultQueueSchedulingPolicy", of.get("defaultQueueSchedulingMode"))
    if policy is not None and _policy(policy) == "fifo":
        raise policy.wrong("fair or drf: parent queues cannot be fifo")
    for queue in queues:
        if (queue.parent or queue.name == "root") and queue.policy == "fifo":
            raise InputError(f"queue {queue.name} has other queues in it and the policy fifo", path=path)

    def number(name: str, default: float) -> float:
        return of[name].number() if name in of else default

    return Allocations(
        queues=tuple(queues),
        policy="fair" if policy is None else _policy(policy),
        most=read_amount(of["queueMaxResourcesDefault"], math.inf) if "queueMaxResourcesDefault" in of else None,
        apps=number("queueMaxAppsDefault", math.inf),
        user_apps=number("userMaxAppsDefault", math.inf),
        of_users=reader.users,
        masters=min(number("queueMaxAMShareDefault", 0.5), 1.0),
        min_wait=number("defaultMinSharePreemptionTimeout", math.inf),
        fair_wait=math.inf if wait is None else wait.number(least=0),
        threshold=min(max(number("defaultFairSharePreemptionThreshold", 0.5), 0.0), 1.0),
        left_out=reader.left_out,
    )


def read_conf(conf: str) -> tuple[Allocations | None, dict[str, Setting]]:
    """Read the files of a parameter ``conf``: an allocation file, yarn-site.xml, or both.

    Returns:
        the allocations, and the properties of all other files.

    Raises:
        UsageError: there is no such file, or two allocation files.
        InputError: a file is invalid.
    """
    found: Allocations | None = None
    site: dict[str, Setting] = {}
    for path in conf_files(conf, FILES):
        if root_of(path) == "allocations":
            if found is not None:
                raise UsageError(f"conf={conf}: two allocation files", hint="give one of them")
            found = read_allocations(path)
        else:
            site.update(properties(path))
    return found, site
