"""Lists a site's settings that affect scheduling but are not modelled.

A setting is listed if its value has an effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.slurm.delimited import cells_of, header_line
from gpuctl.slurm.dump import read_line
from gpuctl.slurm.limits import KNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from gpuctl.core.line_reader import Line

Listed = tuple[tuple[str, str], ...]

_NOTHING = frozenset({"", "(null)", "n/a", "none", "0", "00:00:00", "0 sec", "0 min", "unlimited", "infinite", "-1"})
_NOTHING_OF_PARTITIONS = _NOTHING | {"all", "no"}
_BEGINNINGS = ("priority", "preempt", "scheduler", "select", "topology", "fairshare", "federation")
_NAMES = frozenset(
    {
        *("completewait", "licenses", "maxjobcount", "burstbuffertype", "suspendtime", "suspendprogram"),
        "overtimelimit",
        *("defmempercpu", "defmempergpu", "defmempernode", "defcpupergpu", "maxmempercpu", "maxmempernode"),
    }
)
_DEFAULTS = frozenset(
    {
        *(("schedulertimeslice", "30 sec"), ("schedulertimeslice", "30"), ("maxjobcount", "10000")),
        *(("topologyplugin", "topology/none"), ("topologyplugin", "topology/default")),
        ("topologyplugin", "topology/flat"),
    }
)
"""What ``scontrol show config`` prints although nobody has stated it."""
_PARTITION_KNOWN = frozenset(
    {
        *("partitionname", "nodes", "priority", "priorityjobfactor", "prioritytier", "tresbillingweights", "qos"),
        *("maxtime", "defaulttime", "default", "tres", "totalcpus", "totalnodes", "hidden", "allocnodes", "nodesets"),
        *("maxnodes", "minnodes", "state", "disablerootjobs", "rootonly", "lln"),
        *("allowaccounts", "denyaccounts", "allowqos", "denyqos"),
    }
)
_SELECT_LEFT = ("CR_PACK_NODES",)
"""``SelectTypeParameters`` that state which nodes are taken first."""
_QOS_KNOWN = KNOWN | {
    *("name", "id", "descr", "description", "priority", "usagefactor", "preempt", "flags"),
    *("preemptmode", "preemptexempttime", "rawusage"),
}
_FLAGS_LEFT = frozenset({"enforceusagethreshold", "requiresreservation", "usagefactorsafe", "relative"})
_ASSOCIATION_KNOWN = KNOWN | {
    *("fairshare", "priority", "partition", "description", "organization", "defaultaccount", "adminlevel"),
    *("coordinator", "defaultwckey", "wckeys", "qos", "defaultqos", "share", "cluster", "account", "user"),
    *("parentname", "parname", "parentid", "id", "defqos", "lft", "rgt"),
}


def text_of(line: Line, what: str) -> str:
    """Return a line as text.

    Raises:
        InputError: it is not text; the message contains ``what``.
    """
    try:
        return line.text()
    except RowError as bad:
        raise InputError(f"{what}, line {line.line_no}: {bad}") from None


def of_settings(settings: Mapping[str, str], modelled: frozenset[str]) -> Listed:
    """List unmodelled settings of the cluster; names in lower case."""
    found = [
        (name, f"{value} is not modelled")
        for name, value in settings.items()
        if (name.startswith(_BEGINNINGS) or name in _NAMES)
        and name not in modelled
        and not _nothing(name, value, _NOTHING)
        and (name, value.lower()) not in _DEFAULTS
    ]
    left = [word for word in settings.get("selecttypeparameters", "").upper().split(",") if word in _SELECT_LEFT]
    if left:
        found.append(("selecttypeparameters", f"{','.join(left)} is not modelled"))
    if "gang" in settings.get("preemptmode", "").lower():
        found.append(("preemptmode", "GANG (jobs that take turns) is not modelled"))
    return tuple(found)


def _nothing(name: str, value: str, nothing: frozenset[str]) -> bool:
    """Return whether a value has no effect; an unlimited overrun has one."""
    return value.lower() in nothing and not (name == "overtimelimit" and value.lower() in {"unlimited", "infinite"})


def of_partition(name: str, found: Mapping[str, str], settings: Mapping[str, str]) -> Listed:
    """List unmodelled settings of a partition; names in lower case."""
    listed = [
        (f"partition {name}", f"{key}={value} is not modelled")
        for key, value in found.items()
        if key not in _PARTITION_KNOWN | {"preemptmode", "oversubscribe", "shared"}
        and not _nothing(key, value, _NOTHING_OF_PARTITIONS)
    ]
    mode = found.get("preemptmode", "")
    if "gang" in mode.lower() and mode.lower() != settings.get("preemptmode", "").lower():
        listed.append((f"partition {name}", f"preemptmode={mode}: GANG is not modelled"))
    shared = found.get("oversubscribe") or found.get("shared") or "NO"
    if shared.upper() not in {"NO", "EXCLUSIVE", "YES:1", "FORCE:1"}:
        what = "several jobs on one CPU are not modelled"
        listed.append((f"partition {name}", f"oversubscribe={shared}: {what}"))
    return tuple(listed)


def of_qos(name: str, cells: Mapping[str, str]) -> Listed:
    """List flags and limits of a QOS; a ``UsageThreshold`` only has an effect with ``EnforceUsageThreshold``."""
    flags = [flag.strip() for flag in cells.get("flags", "").split(",")]
    found = [f"flag {flag}" for flag in flags if flag.lower() in _FLAGS_LEFT]
    found += [
        f"{key}={value}"
        for key, value in cells.items()
        if key not in _QOS_KNOWN and value.lower() not in _NOTHING and (key, value) != ("limitfactor", "1.000000")
    ]
    return tuple((f"QOS {name}", f"{what} is not modelled") for what in found)


def of_association(who: str, cells: Mapping[str, str]) -> Listed:
    """List limits of an association in sacctmgr's cells or options, their names in lower case."""
    return tuple(
        (who, f"{key}={value} is not modelled")
        for key, value in cells.items()
        if key not in _ASSOCIATION_KNOWN and value.lower() not in _NOTHING
    )


def of_dump(stream: BinaryIO) -> Listed:
    """List limits of associations in ``sacctmgr dump``.

    Raises:
        InputError: a line cannot be read.
    """
    listed: list[tuple[str, str]] = []
    for line in numbered_lines(stream):
        if not line.data.strip() or line.data.lstrip().startswith(b"#"):
            continue
        try:
            kind, name, options = read_line(line.text())
        except RowError as bad:
            raise InputError(f"sacctmgr dump, line {line.line_no}: {bad}") from None
        listed += of_association(f"{kind} {name}", options)
    return tuple(listed)


def of_assoc(stream: BinaryIO) -> Listed:
    """List limits of associations in ``sacctmgr -P show assoc``; inherited limits are repeated with each of them.

    Raises:
        InputError: a line cannot be parsed.
    """
    lines = numbered_lines(stream)
    layout = header_line(lines, lambda names: {"account", "user"} <= set(names), "`sacctmgr -P show assoc`", "")
    listed: list[tuple[str, str]] = []
    for line in lines:
        if not line.data.strip():
            continue
        try:
            cells = cells_of(line.text(), layout, None)
        except RowError as bad:
            raise InputError(f"sacctmgr show assoc, line {line.line_no}: {bad}") from None
        who = f"user {cells['user']}" if cells["user"] else f"account {cells['account']}"
        listed += of_association(who, cells)
    return tuple(listed)
