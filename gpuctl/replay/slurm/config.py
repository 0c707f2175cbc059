"""What a site's slurm.conf and sacctmgr say that bears on priorities and scheduling, and what of it is not modelled.

Sources: slurm.conf(5) and sacctmgr(1) of Slurm 22.05, SchedMD's page *Multifactor Priority Plugin*.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.ingest.formats.slurm_config import setting_of
from gpuctl.ingest.formats.slurm_sacctmgr_dump import read_line
from gpuctl.ingest.lines import RowError, numbered_lines
from gpuctl.ingest.slurmsite.conf import hosts, statements, words
from gpuctl.ingest.slurmsite.delimited import cells_of, header_line
from gpuctl.replay.slurm.fairshare import USE_PARENT, Association
from gpuctl.replay.slurm.parameters import Parameters, read_parameters
from gpuctl.replay.slurm.units import minutes, number, seconds, tres_amounts, tres_weights, whole
from gpuctl.replay.slurm.unmodelled import of_partition, of_qos, of_settings, text_of
from gpuctl.replay.slurm.usage import RESET_PERIODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import BinaryIO

_NO_NORMAL = ("NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES")
FLAGS = frozenset(
    {
        *_NO_NORMAL,
        *("ACCRUE_ALWAYS", "CALCULATE_RUNNING", "NO_FAIR_TREE", "INCR_ONLY", "MAX_TRES", "SMALL_RELATIVE_TO_TIME"),
    }
)
"""``PriorityFlags`` that are modelled; ``NO_NORMAL_ALL`` stands for four of them.

``ACCRUE_ALWAYS`` and ``CALCULATE_RUNNING`` say since when age counts, and whose priority is worked out: whoever asks
for priorities passes those times and those jobs. The others are looked at in `gpuctl.replay.slurm`.
"""
_UNMODELLED_FLAGS = {"DEPTH_OBLIVIOUS": "the classic formula is used in its place"}
_SHARES_OF_PARENT = 2**31 - 1
"""What ``sacctmgr dump`` writes for ``Fairshare=parent``."""
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
        *("schedulertype", "schedulerparameters", "accountingstoragetres"),
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
        """Whether fair-share is Fair Tree's, not the classic formula's."""
        return "NO_FAIR_TREE" not in self.flags


@dataclass(frozen=True)
class Partition:
    """What priorities and limits need of a partition.

    Attributes:
        name: its name.
        nodes: its nodes' names; empty where the file says ``ALL``, see ``all_nodes``.
        job_factor: ``PriorityJobFactor``.
        tier: ``PriorityTier``.
        billing: ``TRESBillingWeights``; None where CPUs are billed.
        qos: its own QOS.
        max_time_min: ``MaxTime`` in minutes; None for no limit.
        default_time_min: ``DefaultTime`` in minutes; None: that of ``max_time_min``.
        tres: what it has altogether, where the file tells (``scontrol show partition``); memory in MiB.
        all_nodes: whether it has all of the cluster's nodes.
    """

    name: str
    nodes: tuple[str, ...] = ()
    job_factor: int = 1
    tier: int = 1
    billing: Mapping[str, float] | None = None
    qos: str | None = None
    max_time_min: float | None = None
    default_time_min: float | None = None
    tres: Mapping[str, float] = field(default_factory=dict)
    all_nodes: bool = False


@dataclass(frozen=True)
class Qos:
    """What priorities need of a QOS.

    Attributes:
        name: its name.
        priority: ``Priority``.
        usage_factor: ``UsageFactor``.
        preempts: the QOS whose jobs it preempts.
        unmodelled: flags and limits that are there but not modelled.
    """

    name: str
    priority: int = 0
    usage_factor: float = 1.0
    preempts: tuple[str, ...] = ()
    unmodelled: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Site:
    """What slurm.conf, or ``scontrol show config``, says.

    Attributes:
        multifactor: the settings of the priority plugin; None with ``PriorityType=priority/basic``: first come, first.
        partitions: by name, in the order of the file.
        parameters: ``SchedulerParameters``.
        scheduler: ``SchedulerType``.
        tres: trackable resources in Slurm's order, lower case.
        unmodelled: settings that are there and change scheduling or priority, but not here: name and why.
    """

    multifactor: Multifactor | None
    partitions: Mapping[str, Partition]
    parameters: Parameters
    scheduler: str
    tres: tuple[str, ...]
    unmodelled: tuple[tuple[str, str], ...]


def read_conf(stream: BinaryIO) -> Site:
    """Read slurm.conf.

    Raises:
        InputError: a statement that matters cannot be read, or an ``Include`` is there.
    """
    settings: dict[str, str] = {}
    partitions: dict[str, dict[str, str]] = {}
    default: dict[str, str] = {}
    for statement in statements(stream):
        try:
            if statement.fault:
                raise RowError(statement.fault)
            if statement.text.lower().startswith("include") and "=" not in statement.text.split(None, 1)[0]:
                raise RowError("names another file: put its contents in its place")
            found = words(statement.text)
        except RowError as bad:
            raise InputError(f"slurm.conf, line {statement.line_no}: {bad}") from None
        if "partitionname" not in found:
            if next(iter(found)) not in {"nodename", "nodeset", "downnodes", "frontendname"}:
                settings |= found
        elif found["partitionname"].upper() == "DEFAULT":
            default |= found
        else:
            for name in found["partitionname"].split(","):
                partitions[name] = {**partitions.get(name, default), **found}
    return site_of(settings, partitions)


def read_running(config: BinaryIO, partitions: BinaryIO) -> Site:
    """Read ``scontrol show config`` and ``scontrol --oneliner show partitions``: what is in force.

    Slurm 22.05 prints ``NO_NORMAL_ALL`` in its ``PriorityFlags`` for each single ``NO_NORMAL_*`` flag: read slurm.conf
    where one of them is set. It does not print ``TRESBillingWeights`` of partitions without ones.

    Raises:
        InputError: a setting that matters cannot be read.
    """
    settings: dict[str, str] = {}
    for line in numbered_lines(config):
        found = setting_of(text_of(line, "scontrol show config").strip())
        if found:
            settings[found[0].lower()] = found[1].strip()
    rows: dict[str, dict[str, str]] = {}
    for line in numbered_lines(partitions):
        words_of = text_of(line, "scontrol show partitions").split()
        cells = dict(word.split("=", 1) for word in words_of if "=" in word)
        if "PartitionName" in cells:
            rows[cells["PartitionName"]] = {key.lower(): value for key, value in cells.items()}
    return site_of(settings, rows)


def site_of(settings: Mapping[str, str], partitions: Mapping[str, Mapping[str, str]]) -> Site:
    """Make sense of settings of the cluster and of each partition, their names in lower case.

    Raises:
        InputError: one cannot be read.
    """
    kind = settings.get("prioritytype", "priority/basic").lower()
    unmodelled: list[tuple[str, str]] = []
    if kind not in {"priority/basic", "priority/multifactor"}:
        raise InputError(f"PriorityType={kind}: expected priority/multifactor or priority/basic")
    flags = _flags(settings.get("priorityflags", ""), unmodelled)
    tres = [name.strip().lower() for name in settings.get("accountingstoragetres", "").split(",") if name.strip()]
    known = tuple(dict.fromkeys([*_TRES_DEFAULT, *tres]))
    weights = tres_weights("PriorityWeightTRES", _value(settings, "priorityweighttres"))
    unmodelled += [
        ("PriorityWeightTRES", f"{name} is not in AccountingStorageTRES: Slurm passes it over")
        for name in weights if name not in known
    ]  # fmt: skip
    multifactor = None
    if kind == "priority/multifactor":
        multifactor = _multifactor(settings, flags, {name: w for name, w in weights.items() if name in known})
    parameters = read_parameters(_value(settings, "schedulerparameters"))
    unmodelled += [("SchedulerParameters", what) for what in parameters.unmodelled]
    unmodelled += of_settings(settings, _MODELLED)
    for name, found in partitions.items():
        unmodelled += of_partition(name, found, settings)
    rows = {name: _partition(name, found) for name, found in partitions.items()}
    return Site(
        multifactor, rows, parameters, settings.get("schedulertype", "sched/backfill").lower(), known,
        tuple(unmodelled),
    )  # fmt: skip


def _value(settings: Mapping[str, str], name: str) -> str:
    value = settings.get(name, "")
    return "" if value.lower() in {"(null)", "n/a"} else value


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
    period = (_value(settings, "priorityusageresetperiod") or "NONE").upper()
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


def _partition(name: str, found: Mapping[str, str]) -> Partition:
    # before 16.05 one Priority stood for both
    both = _value(found, "priority") or "1"
    nodes = _value(found, "nodes")
    billing = _value(found, "tresbillingweights")
    qos, usual = _value(found, "qos"), _value(found, "defaulttime")
    try:
        names = () if nodes.upper() == "ALL" else tuple(hosts(nodes))
    except RowError as bad:
        raise InputError(f"partition {name}: {bad}") from None
    return Partition(
        name,
        names,
        job_factor=whole("PriorityJobFactor", found.get("priorityjobfactor", both)),
        tier=whole("PriorityTier", found.get("prioritytier", both)),
        billing=tres_weights("TRESBillingWeights", billing) if billing else None,
        qos=qos or None,
        max_time_min=minutes("MaxTime", found.get("maxtime", "UNLIMITED")),
        default_time_min=minutes("DefaultTime", usual) if usual.upper() not in {"", "NONE"} else None,
        tres=tres_amounts(_value(found, "tres")),
        all_nodes=nodes.upper() == "ALL",
    )


def read_dump(stream: BinaryIO) -> tuple[Association, ...]:
    """Read the associations of ``sacctmgr dump``.

    An association without a ``Priority`` has that of the nearest account above which has one.

    Raises:
        InputError: a line cannot be read.
    """
    rows, parent = [Association("root")], "root"
    for line in numbered_lines(stream):
        if not line.data.strip() or line.data.lstrip().startswith(b"#"):
            continue
        try:
            kind, name, options = read_line(line.text())
        except RowError as bad:
            raise InputError(f"sacctmgr dump, line {line.line_no}: {bad}") from None
        shares = _shares(options.get("fairshare", "1"))
        priority = options.get("priority")
        given = whole("Priority", priority) if priority else None
        if kind == "parent":
            parent = name
        elif kind == "cluster":
            rows[0] = Association("root", None, None, shares, given)
        elif kind == "account":
            rows.append(Association(name, None, parent, shares, given))
        else:
            rows.append(Association(parent, name, None, shares, given, options.get("partition") or None))
    return _inherited(rows)


def read_assoc(stream: BinaryIO) -> tuple[Association, ...]:
    """Read the associations of ``sacctmgr -P show assoc``; the command names no parents without ``withd`` or ``tree``.

    It must have the columns Account, User, Share (or Fairshare), Priority and ParentName: ask with
    ``format=account,parentname,user,partition,fairshare,priority``.

    Raises:
        InputError: it has not, or a line cannot be read.
    """
    lines = numbered_lines(stream)
    hint = "sacctmgr -P show assoc format=account,parentname,user,partition,fairshare,priority"
    layout = header_line(lines, _has_parents, "`sacctmgr -P show assoc` with parents", hint)
    rows = []
    for line in lines:
        if not line.data.strip():
            continue
        try:
            cells = cells_of(line.text(), layout, None)
        except RowError as bad:
            raise InputError(f"sacctmgr show assoc, line {line.line_no}: {bad}") from None
        user = cells["user"] or None
        above = None if user or cells["account"] == "root" else cells.get("parname") or cells["parentname"] or "root"
        shares = _shares(cells.get("share") or cells.get("fairshare") or "1")
        priority = whole("Priority", cells["priority"]) if cells.get("priority") else None
        rows.append(Association(cells["account"], user, above, shares, priority, cells.get("partition") or None))
    return _inherited(rows)


def _has_parents(columns: tuple[str, ...]) -> bool:
    return {"account", "user"} <= set(columns) and bool({"parname", "parentname"} & set(columns))


def _inherited(rows: Iterable[Association]) -> tuple[Association, ...]:
    rows = tuple(rows)
    accounts = {row.account: row for row in rows if row.user is None}

    def priority(row: Association) -> int | None:
        seen: set[str] = set()
        at: Association | None = row
        while at is not None and at.priority is None:
            above = at.account if at.user is not None else at.parent
            if above is None or (at.user is None and above in seen):
                return None
            seen.add(above)
            at = accounts.get(above)
        return None if at is None else at.priority

    return tuple(row._replace(priority=priority(row)) for row in rows)


def _shares(text: str) -> int:
    if text.lower() == "parent":
        return USE_PARENT
    shares = whole("Fairshare", text)
    return USE_PARENT if shares == _SHARES_OF_PARENT else shares


def read_qos(stream: BinaryIO) -> dict[str, Qos]:
    """Read ``sacctmgr -P show qos``; the dump does not say what a QOS is.

    Raises:
        InputError: the first line is not its header, or a number is none.
    """
    lines = numbered_lines(stream)
    hint = "write it with: sacctmgr -P show qos > qos.txt"
    layout = header_line(lines, lambda names: {"name", "priority"} <= set(names), "`sacctmgr -P show qos`", hint)
    found = {}
    for line in lines:
        if not line.data.strip():
            continue
        try:
            cells = cells_of(line.text(), layout, "descr")
        except RowError as bad:
            raise InputError(f"sacctmgr show qos, line {line.line_no}: {bad}") from None
        found[cells["name"]] = Qos(
            cells["name"],
            whole("Priority", cells["priority"] or "0"),
            number("UsageFactor", cells.get("usagefactor") or "1"),
            tuple(filter(None, cells.get("preempt", "").split(","))),
            of_qos(cells["name"], cells),
        )
    return found
