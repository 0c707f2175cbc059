"""Which of a site's settings change who starts when and are not modelled: they are listed, not passed over.

A setting is listed where it is there with a value that does something. Limits of partitions, QOS and associations are
among them: no priority depends on them, but who may start does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.ingest.formats.slurm_sacctmgr_dump import read_line
from gpuctl.ingest.lines import RowError, numbered_lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from gpuctl.ingest.lines import Line

Listed = tuple[tuple[str, str], ...]

_NOTHING = frozenset({"", "(null)", "n/a", "none", "0", "00:00:00"})
_NOTHING_OF_PARTITIONS = _NOTHING | {"all", "no", "unlimited", "infinite"}
_BEGINNINGS = ("priority", "preempt", "scheduler", "select", "topology", "fairshare", "federation")
_NAMES = frozenset(
    {
        *("accountingstorageenforce", "overtimelimit", "enforcepartlimits", "completewait", "licenses", "killwait"),
        *("maxjobcount", "maxarraysize", "jobrequeue", "burstbuffertype", "gpufreqdef", "batchstarttimeout"),
        *("suspendtime", "suspendprogram", "resumetimeout", "defmempercpu", "defmempernode", "defcpupergpu"),
    }
)
_PARTITION_KNOWN = frozenset(
    {
        *("partitionname", "nodes", "priority", "priorityjobfactor", "prioritytier", "tresbillingweights", "qos"),
        *("maxtime", "defaulttime", "default", "tres", "totalcpus", "totalnodes", "hidden", "allocnodes"),
    }
)
_PARTITION_DEFAULTS = frozenset({("minnodes", "1"), ("state", "up"), ("oversubscribe", "exclusive=no")})
_QOS_KNOWN = frozenset({"name", "id", "descr", "description", "priority", "usagefactor", "preempt", "flags"})
_ASSOCIATION_KNOWN = frozenset(
    {
        *("fairshare", "priority", "partition", "description", "organization", "defaultaccount", "adminlevel"),
        *("coordinator", "defaultwckey", "wckeys"),
    }
)


def text_of(line: Line, what: str) -> str:
    """Return a line as text.

    Raises:
        InputError: it is none; ``what`` it is of.
    """
    try:
        return line.text()
    except RowError as bad:
        raise InputError(f"{what}, line {line.line_no}: {bad}") from None


def of_settings(settings: Mapping[str, str], modelled: frozenset[str]) -> Listed:
    """List settings of the cluster; names in lower case."""
    return tuple(
        (name, f"{value} is not modelled")
        for name, value in settings.items()
        if (name.startswith(_BEGINNINGS) or name in _NAMES) and name not in modelled and value.lower() not in _NOTHING
    )


def of_partition(name: str, found: Mapping[str, str], settings: Mapping[str, str]) -> Listed:
    """List settings of a partition; ``PreemptMode`` only where it is not the cluster's."""
    return tuple(
        (f"partition {name}", f"{key}={value} is not modelled")
        for key, value in found.items()
        if key not in _PARTITION_KNOWN
        and value.lower() not in _NOTHING_OF_PARTITIONS
        and (key, value.lower()) not in _PARTITION_DEFAULTS
        and not (key == "preemptmode" and value.lower() == settings.get(key, "").lower())
    )


def of_qos(name: str, cells: Mapping[str, str]) -> Listed:
    """List flags and limits of a QOS; ``NoDecay`` is about the QOS' own usage, which no priority looks at."""
    flags = [flag.strip() for flag in cells.get("flags", "").split(",")]
    found = [f"flag {flag}" for flag in flags if flag and flag.lower() != "nodecay"]
    found += [
        f"{key}={value}"
        for key, value in cells.items()
        if key not in _QOS_KNOWN and value.lower() not in _NOTHING and (key, value) != ("preemptmode", "cluster")
    ]
    return tuple((f"QOS {name}", f"{what} is not modelled") for what in found)


def of_dump(stream: BinaryIO) -> Listed:
    """List limits of associations in ``sacctmgr dump``; which QOS they may use is not a limit of theirs.

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
        listed += [
            (f"{kind} {name}", f"{key}={value} is not modelled")
            for key, value in options.items()
            if key not in _ASSOCIATION_KNOWN and key not in {"qos", "defaultqos"} and value
        ]
    return tuple(listed)
