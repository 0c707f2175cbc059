"""A site's settings for priorities and scheduling from slurm.conf and sacctmgr, and unmodelled ones.

Sources: slurm.conf(5) and sacctmgr(1) of Slurm 22.05, SchedMD's page *Multifactor Priority Plugin*.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.slurm.conf import statements, words
from gpuctl.slurm.nodes import Nodes
from gpuctl.slurm.parameters import RESET_PERIODS, Parameters, read_parameters
from gpuctl.slurm.partitions import mode_of, names_of, over_time, read_partition, value_of
from gpuctl.slurm.scontrol import fields, name_of, records, setting_of
from gpuctl.slurm.units import exact_seconds, seconds, tres_weights, whole
from gpuctl.slurm.unmodelled import of_partition, of_settings, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO

    from gpuctl.slurm.accounts import Qos
    from gpuctl.slurm.associations import Association
    from gpuctl.slurm.nodes import Node
    from gpuctl.slurm.partitions import Partition


MOST_INCLUDED = 100
_INCLUDE = re.compile(r"include\s+(.+)", re.IGNORECASE)


def conf_statements(stream: BinaryIO, open_include: Callable[[str], BinaryIO] | None) -> Iterator[tuple[str, str]]:
    """Yield the location and text of each statement; an ``Include`` is replaced by the statements of its file.

    Args:
        stream: of slurm.conf.
        open_include: opens the file that an ``Include`` names; None: it is rejected.

    Raises:
        InputError: a statement cannot be parsed, or an ``Include`` cannot be followed: the file does not exist, it was
            included before, or there are more than `MOST_INCLUDED`.
    """
    yield from _of_file("slurm.conf", stream, open_include, [])


def _of_file(
    title: str, stream: BinaryIO, open_include: Callable[[str], BinaryIO] | None, included: list[str]
) -> Iterator[tuple[str, str]]:
    for statement in statements(stream):
        where = f"{title}, line {statement.line_no}"
        if statement.fault:
            raise InputError(f"{where}: {statement.fault}")
        other = _INCLUDE.fullmatch(statement.text)
        if other is None:
            yield where, statement.text
            continue
        if open_include is None:
            raise InputError(f"{where}: names another file: put its contents in its place")
        name = other[1].strip().strip('"')
        # a second inclusion is a cycle, or would repeat all of its settings
        if name in included or len(included) >= MOST_INCLUDED:
            what = "a second time" if name in included else f"after {MOST_INCLUDED} others"
            raise InputError(f"{where}: includes {name} {what}")
        included.append(name)
        try:
            inner = open_include(name)
        except InputError as bad:
            raise InputError(f"{where}: {bad}", hint=bad.hint) from None
        with inner:
            yield from _of_file(name, inner, open_include, included)


_NO_NORMAL = ("NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES")
FLAGS = frozenset(
    {
        *_NO_NORMAL,
        *("ACCRUE_ALWAYS", "CALCULATE_RUNNING", "NO_FAIR_TREE", "INCR_ONLY", "MAX_TRES", "SMALL_RELATIVE_TO_TIME"),
    }
)
"""``PriorityFlags`` that are modelled; ``NO_NORMAL_ALL`` stands for four of them.

``ACCRUE_ALWAYS`` and ``CALCULATE_RUNNING`` state since when age counts, and whose priority is worked out: whatever
process asks for priorities passes those times and those jobs. The others are looked at in
`gpuctl.replay.policies.slurm`.
"""
_UNMODELLED_FLAGS = {"DEPTH_OBLIVIOUS": "the classic formula is used in its place"}
_WEIGHTS = {
    "age": "priorityweightage",
    "assoc": "priorityweightassoc",
    "fairshare": "priorityweightfairshare",
    "job_size": "priorityweightjobsize",
    "partition": "priorityweightpartition",
    "qos": "priorityweightqos",
}
_MODELLED = frozenset(
    {
        *_WEIGHTS.values(),
        *("prioritytype", "prioritydecayhalflife", "prioritycalcperiod", "prioritymaxage", "priorityfavorsmall"),
        *("priorityflags", "priorityusageresetperiod", "priorityweighttres", "fairsharedampeningfactor"),
        *("schedulertype", "schedulerparameters", "accountingstoragetres", "accountingstorageenforce", "selecttype"),
        *("selecttypeparameters", "preempttype", "preemptmode", "preemptexempttime", "preemptparameters"),
        *("enforcepartlimits", "killwait", "jobrequeue"),
    }
)
_TRES_DEFAULT = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")


@dataclass(frozen=True)
class Multifactor:
    """The settings of priority/multifactor; times in seconds.

    Attributes:
        half_life_s: ``PriorityDecayHalfLife``; 0: no decay.
        calc_period_s: ``PriorityCalcPeriod``.
        max_age_s: ``PriorityMaxAge``.
        reset_period: ``PriorityUsageResetPeriod``.
        favor_small: ``PriorityFavorSmall``.
        flags: of `FLAGS`.
        dampening: ``FairShareDampeningFactor``.
        weight_age: ``PriorityWeightAge``, and so on for the other factors.
        weight_assoc: see ``weight_age``.
        weight_fairshare: see ``weight_age``.
        weight_job_size: see ``weight_age``.
        weight_partition: see ``weight_age``.
        weight_qos: see ``weight_age``.
        weight_tres: ``PriorityWeightTRES`` by resource, names in lower case.
    """

    half_life_s: float = 7 * 86_400.0
    calc_period_s: float = 300.0
    max_age_s: float = 7 * 86_400.0
    reset_period: str = "NONE"
    favor_small: bool = False
    flags: frozenset[str] = frozenset()
    dampening: int = 1
    weight_age: int = 0
    weight_assoc: int = 0
    weight_fairshare: int = 0
    weight_job_size: int = 0
    weight_partition: int = 0
    weight_qos: int = 0
    weight_tres: Mapping[str, float] = field(default_factory=dict)

    @property
    def fair_tree(self) -> bool:
        """Return whether fair-share is Fair Tree's, not the classic formula's."""
        return "NO_FAIR_TREE" not in self.flags


@dataclass(frozen=True)
class Preemption:
    """How preemption selects and treats jobs.

    Attributes:
        by: ``none`` | ``partition`` (``preempt/partition_prio``: by ``PriorityTier``) | ``qos`` (``preempt/qos``).
        mode: ``PreemptMode`` of the cluster: ``OFF`` | ``CANCEL`` | ``REQUEUE`` | ``SUSPEND``; a partition's or a QOS's
            own takes precedence.
        gang: whether jobs of one partition are time-sliced on shared nodes (``GANG``).
        exempt_s: ``PreemptExemptTime``: seconds that a job runs before it can be preempted.
    """

    by: str = "none"
    mode: str = "OFF"
    gang: bool = False
    exempt_s: float = 0.0


@dataclass(frozen=True)
class Site:
    """A site's configuration: slurm.conf, or ``scontrol show config``, and sacctmgr's output.

    Attributes:
        multifactor: the settings of the priority plugin; None with ``PriorityType=priority/basic``: first come, first
            served.
        partitions: by name, in the order of the file.
        parameters: ``SchedulerParameters``.
        scheduler: ``SchedulerType``: ``sched/backfill``, or ``sched/builtin`` which has no backfill pass.
        tres: trackable resources in Slurm's order, lower case.
        unmodelled: settings that change scheduling or priority in Slurm but are not modelled here: name and reason.
        name: ``ClusterName``.
        nodes: of the ``NodeName`` statements, in the order of the file.
        preemption: ``PreemptType``, ``PreemptMode`` and other global settings.
        select: ``SelectType``: ``select/cons_tres``, ``select/cons_res``, or ``select/linear`` (whole nodes).
        select_parameters: ``SelectTypeParameters``, upper case: ``CR_CORE_MEMORY``, ``CR_CPU`` and others.
        enforce: ``AccountingStorageEnforce``, lower case, including implied flags: ``associations``, ``limits``,
            ``qos`` and others. Limits of QOS and associations hold only if ``limits`` is among them.
        enforce_part_limits: ``EnforcePartLimits``: ``NO`` (jobs beyond a partition's limits wait forever) | ``ANY`` |
            ``ALL`` (they are rejected).
        over_time_min: ``OverTimeLimit`` in minutes: time that a job may run beyond its limit; infinity for
            ``UNLIMITED``.
        kill_wait_s: ``KillWait``: seconds between the two signals that end a job.
        requeue: ``JobRequeue``: whether a preempted job is requeued; else it is cancelled.
        qos: by name, as in ``sacctmgr -P show qos``; empty without that file.
        associations: as in sacctmgr's output, the root first, with inherited values; empty without that file.
            `gpuctl.replay.policies.slurm.fairshare.build_tree` puts them in order.
        switches: the leaf switch or block of each node, from topology.conf; empty without that file.
        files: the files read, for headings.
    """

    multifactor: Multifactor | None
    partitions: Mapping[str, Partition]
    parameters: Parameters
    scheduler: str
    tres: tuple[str, ...]
    unmodelled: tuple[tuple[str, str], ...]
    name: str = ""
    nodes: tuple[Node, ...] = ()
    preemption: Preemption = field(default_factory=Preemption)
    select: str = "select/cons_tres"
    select_parameters: frozenset[str] = frozenset()
    enforce: frozenset[str] = frozenset()
    enforce_part_limits: str = "NO"
    over_time_min: float = 0.0
    kill_wait_s: float = 30.0
    requeue: bool = True
    qos: Mapping[str, Qos] = field(default_factory=dict)
    associations: tuple[Association, ...] = ()
    switches: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    @property
    def limits_hold(self) -> bool:
        """Return whether limits of QOS and associations are enforced (``AccountingStorageEnforce=limits``)."""
        return "limits" in self.enforce

    @property
    def whole_nodes(self) -> bool:
        """Return whether jobs never share a node (``select/linear``)."""
        return self.select == "select/linear"

    def nodes_of(self, partition: Partition) -> tuple[str, ...]:
        """Return the names of a partition's nodes; all of the cluster's for ``ALL``."""
        return tuple(node.name for node in self.nodes) if partition.all_nodes else partition.nodes


def read_conf(stream: BinaryIO, open_include: Callable[[str], BinaryIO] | None = None) -> Site:
    """Read slurm.conf.

    Args:
        stream: its bytes.
        open_include: opens the file that an ``Include`` names; None: an ``Include`` is rejected.

    Raises:
        InputError: a relevant statement cannot be parsed, an ``Include`` cannot be followed, or a partition occurs
            twice.
    """
    settings: dict[str, str] = {}
    partitions: dict[str, dict[str, str]] = {}
    default: dict[str, str] = {}
    nodes = Nodes()
    for where, text in conf_statements(stream, open_include):
        try:
            found = words(text)
            first = next(iter(found))
            if first in Nodes.KEYS:
                nodes.take(found)
            elif first == "frontendname":
                pass  # programs that represent nodes of other kinds of nodes
            elif first != "partitionname":
                settings |= found
            elif found["partitionname"].upper() == "DEFAULT":
                default |= found
            else:
                name = name_of(found["partitionname"], "partition name")
                if name in partitions:
                    raise RowError(f"partition {name} occurs twice, which Slurm refuses")
                partitions[name] = {**default, **found}
        except RowError as bad:
            raise InputError(f"{where}: {bad}") from None
    return site_of(settings, partitions, nodes)


def read_running(config: BinaryIO, partitions: BinaryIO, nodes: Nodes | None = None) -> Site:
    """Read ``scontrol show config`` and ``scontrol show partitions``, with or without ``-o``: the active settings.

    Slurm 22.05 prints ``NO_NORMAL_ALL`` in its ``PriorityFlags`` for each single ``NO_NORMAL_*`` flag: read slurm.conf
    instead if one of them is set. It omits ``TRESBillingWeights`` of partitions that have none.

    Args:
        config: the settings.
        partitions: the partitions.
        nodes: from `gpuctl.slurm.nodes.read_shown_nodes`, if ``scontrol show node`` is also available.

    Raises:
        InputError: a relevant setting cannot be parsed.
    """
    settings: dict[str, str] = {}
    for line in numbered_lines(config):
        found = setting_of(text_of(line, "scontrol show config").strip())
        if found:
            settings[found[0].lower()] = found[1].strip()
    rows: dict[str, dict[str, str]] = {}
    for record in records(partitions, b"PartitionName="):
        if record.fault:
            raise InputError(f"scontrol show partitions, line {record.line_no}: {record.fault}")
        cells = fields(record.text)
        rows[cells["PartitionName"]] = {key.lower(): value for key, value in cells.items()}
    return site_of(settings, rows, nodes)


def site_of(
    settings: Mapping[str, str], partitions: Mapping[str, Mapping[str, str]], nodes: Nodes | None = None
) -> Site:
    """Interpret the settings of the cluster, of each partition and of the nodes; names in lower case.

    Raises:
        InputError: one cannot be parsed.
    """
    kind = settings.get("prioritytype", "priority/basic").lower()
    unmodelled: list[tuple[str, str]] = []
    if kind not in {"priority/basic", "priority/multifactor"}:
        raise InputError(f"PriorityType={kind}: expected priority/multifactor or priority/basic")
    flags = _flags(settings.get("priorityflags", ""), unmodelled)
    tres = [name.strip().lower() for name in settings.get("accountingstoragetres", "").split(",") if name.strip()]
    known = tuple(dict.fromkeys([*_TRES_DEFAULT, *tres]))
    weights = tres_weights("PriorityWeightTRES", value_of(settings, "priorityweighttres"))
    unmodelled += [
        ("PriorityWeightTRES", f"{name} is not in AccountingStorageTRES: Slurm passes it over")
        for name in weights if name not in known
    ]  # fmt: skip
    multifactor = None
    if kind == "priority/multifactor":
        multifactor = _multifactor(settings, flags, {name: w for name, w in weights.items() if name in known})
    parameters = read_parameters(value_of(settings, "schedulerparameters"), value_of(settings, "preemptparameters"))
    unmodelled += [("SchedulerParameters", what) for what in parameters.unmodelled]
    unmodelled += of_settings(settings, _MODELLED)
    nodes = nodes or Nodes()
    rows = {}
    for name, found in partitions.items():
        unmodelled += of_partition(name, found, settings)
        rows[name] = nodes.members(read_partition(name, found))
    unmodelled += nodes.unmodelled
    preemption = _preemption(settings)
    select = value_of(settings, "selecttype").lower()
    if not select:
        select = "select/cons_tres"
        unmodelled.append(("SelectType", "is not there: taken for select/cons_tres, the default since Slurm 23.11"))
    return Site(
        multifactor,
        rows,
        parameters,
        settings.get("schedulertype", "sched/backfill").lower(),
        known,
        tuple(unmodelled),
        name=value_of(settings, "clustername"),
        nodes=tuple(nodes.nodes.values()),
        preemption=preemption,
        select=select,
        select_parameters=frozenset(names_of(value_of(settings, "selecttypeparameters").upper())),
        enforce=_enforced(value_of(settings, "accountingstorageenforce")),
        enforce_part_limits=_part_limits(value_of(settings, "enforcepartlimits")),
        over_time_min=over_time(value_of(settings, "overtimelimit")) or 0.0,
        kill_wait_s=float(whole("KillWait", value_of(settings, "killwait").removesuffix(" sec") or "30")),
        requeue=value_of(settings, "jobrequeue") != "0",
    )


def _preemption(settings: Mapping[str, str]) -> Preemption:
    kinds = {"preempt/none": "none", "preempt/partition_prio": "partition", "preempt/qos": "qos"}
    text = value_of(settings, "preempttype").lower() or "preempt/none"
    if text not in kinds:
        raise InputError(f"PreemptType={text}: expected one of {', '.join(kinds)}")
    mode, options = mode_of("slurm.conf", value_of(settings, "preemptmode"))
    exempt = value_of(settings, "preemptexempttime")
    exempt_s = exact_seconds("PreemptExemptTime", exempt) if exempt else 0.0
    return Preemption(kinds[text], mode or "OFF", "GANG" in options, exempt_s or 0.0)


_IMPLIED = {
    "limits": ("associations",),
    "qos": ("associations",),
    "wckeys": ("associations",),
    "safe": ("associations", "limits"),
    "all": ("associations", "limits", "qos", "wckeys", "safe"),
}


def _enforced(text: str) -> frozenset[str]:
    """Return the flags of ``AccountingStorageEnforce`` and those implied; numbers date from before Slurm 2.0."""
    found = {name.lower() for name in names_of(text)} - {"0"}
    old = {"1": "associations", "2": "limits", "associationsonly": "associations"}
    found = {old.get(name, name) for name in found}
    return frozenset(found.union(*(_IMPLIED.get(name, ()) for name in found)))


def _part_limits(text: str) -> str:
    word = {"": "NO", "YES": "ALL", "0": "NO", "1": "ALL"}.get(text.upper(), text.upper())
    if word not in {"NO", "ANY", "ALL"}:
        raise InputError(f"EnforcePartLimits={text[:60]}: expected NO, ANY or ALL")
    return word


def _flags(text: str, unmodelled: list[tuple[str, str]]) -> frozenset[str]:
    found: set[str] = set()
    for flag in filter(None, (part.strip().upper() for part in text.split(","))):
        if flag == "NO_NORMAL_ALL":
            found |= set(_NO_NORMAL)
        elif flag in FLAGS:
            found.add(flag)
        elif flag in _UNMODELLED_FLAGS:
            unmodelled.append(("PriorityFlags", f"{flag}: {_UNMODELLED_FLAGS[flag]}"))
            found.add("NO_FAIR_TREE")
        elif flag != "FAIR_TREE":  # the default since 19.05
            unmodelled.append(("PriorityFlags", f"{flag} is not known"))
    return frozenset(found)


def _multifactor(settings: Mapping[str, str], flags: frozenset[str], tres: Mapping[str, float]) -> Multifactor:
    default = Multifactor()
    period = (value_of(settings, "priorityusageresetperiod") or "NONE").upper()
    if period not in RESET_PERIODS:
        raise InputError(f"PriorityUsageResetPeriod={period}: expected one of {', '.join(RESET_PERIODS)}")
    times = {
        name: seconds(title, settings[title.lower()]) if settings.get(title.lower()) else getattr(default, name)
        for name, title in {
            "half_life_s": "PriorityDecayHalfLife",
            "calc_period_s": "PriorityCalcPeriod",
            "max_age_s": "PriorityMaxAge",
        }.items()
    }
    if times["calc_period_s"] <= 0 or times["max_age_s"] <= 0:
        raise InputError("PriorityCalcPeriod and PriorityMaxAge are at least a minute")
    weight = {name: whole(key, settings.get(key, "0")) for name, key in _WEIGHTS.items()}
    return Multifactor(
        half_life_s=times["half_life_s"],
        calc_period_s=times["calc_period_s"],
        max_age_s=times["max_age_s"],
        reset_period=period,
        favor_small=settings.get("priorityfavorsmall", "no").lower() == "yes",
        flags=flags,
        dampening=whole("FairShareDampeningFactor", settings.get("fairsharedampeningfactor", "1")) or 1,
        weight_tres=dict(tres),
        weight_age=weight["age"],
        weight_assoc=weight["assoc"],
        weight_fairshare=weight["fairshare"],
        weight_job_size=weight["job_size"],
        weight_partition=weight["partition"],
        weight_qos=weight["qos"],
    )
