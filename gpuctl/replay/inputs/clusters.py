"""The nodes to replay on, from a short form or a TOML file; for a trace's own see `gpuctl.replay.inputs.trace`."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import MOST_TOML, parse_toml, read_whole
from gpuctl.core.notes import NamedValue, listed, literal, note
from gpuctl.core.path_checks import is_file
from gpuctl.replay.models.records import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Floats, Ints, Workload

MOST_NODES = 1_000_000
ONE_RACK = "(one rack)"
"""The rack of all nodes if racks are not known at all."""

ADDED_RACK = "(added)"

_PART = re.compile(r"(\d{1,7})x(\d{1,7})", re.ASCII)
_POOL = re.compile(r"pool:(\d{1,10})", re.ASCII)
_SHORT = "64x8 (nodes x GPUs of each), 32x8+16x4, pool:512 (GPUs whose places do not matter)"
_KEYS = {
    "": ("pool", "cpus", "mem_mb", "nodes", "quotas", "queues", "down"),
    "nodes": ("count", "name", "gpus", "gpu_type", "rack", "per_rack", "cpus", "mem_mb"),
    "queues": ("name", "nodes"),
    "down": ("node", "from_s", "until_s"),
}


def parse_cluster(text: str, workload: Workload) -> Cluster:
    """Read a cluster from its short form or from a TOML file.

    Short forms: ``64x8`` (64 nodes of 8 GPUs in one rack), ``32x8+16x4``, ``pool:512`` (512 GPUs whose places do not
    matter). A TOML file has either ``pool = 512`` or one or more ``[[nodes]]``, and optional keys::

        [[nodes]]         # a group of equal nodes
        count = 16          # default 1
        name = "a"          # the nodes are a01 … a16; with count 1 just a; default s001, s002 … through all groups
        gpus = 8
        gpu_type = "V100"   # default: not known, suits every job
        cpus = 64           # for --resources; default: not known
        mem_mb = 512000     # the same; with cpus, gpus may be 0
        per_rack = 4        # the group's own racks, 4 nodes each …
        rack = "r1"         # … or all of them in this rack; default: one rack for all groups that name none

        [quotas]            # GPUs by queue; a queue that is not here has none
        vc1 = 64

        [[queues]]          # a queue that may use some nodes only
        name = "vc1"
        nodes = ["a"]     # names of groups or of nodes

        [[down]]            # seconds of the replay's clock
        node = "a03"
        from_s = 3600
        until_s = 7200      # default: for good

    Args:
        text: a short form or the path of a file.
        workload: the queues and GPU types that the cluster's numbers refer to. A type that no job requests gets a
            number beyond those (`Cluster.gpu_types`).

    Raises:
        UsageError: the text is neither a short form nor a file.
        InputError: the file is not such TOML; the message names the key, the value found and the value expected.
    """
    short = text.strip().lower()
    pool = _POOL.fullmatch(short)
    if pool and int(pool[1]):
        return _pool(text, int(pool[1]), workload)
    parts = [_PART.fullmatch(part.strip()) for part in short.split("+")]
    sizes = [(int(part[1]), int(part[2])) for part in parts if part]
    if len(sizes) == len(parts):
        if any(count < 1 or gpus < 1 for count, gpus in sizes) or sum(count for count, _ in sizes) > MOST_NODES:
            raise UsageError(f"--cluster {text}: expected 1 to {MOST_NODES:,} nodes of at least 1 GPU each")
        groups = [_Group(count, gpus) for count, gpus in sizes]
        return _assemble(text, groups, workload)
    path = Path(text)
    if not is_file(path):
        raise UsageError(f"--cluster {text[:200]!r}: no such file, and no short form", hint=f"short forms: {_SHORT}")
    hint = f"short forms: {_SHORT}"
    found = parse_toml(read_whole(path, most=MOST_TOML, hint=hint), text, hint)
    return _File(text, workload).cluster(found)


def in_racks(cluster: Cluster, text: str, per_rack: int) -> Cluster:
    """The same nodes in racks of `per_rack`, in order; the last rack may be partly filled.

    Args:
        cluster: made from a short form.
        text: the short form.
        per_rack: at least 1.

    Raises:
        UsageError: a pool, or a file, which defines its own racks.
    """
    if cluster.pool or is_file(Path(text)):
        raise UsageError(
            f"--per-rack {per_rack}: --cluster {text[:200]} defines its own racks",
            hint="in a TOML file, per_rack under [[nodes]]; a pool has no racks",
        )
    rack = np.arange(len(cluster.nodes), dtype=np.int64) // per_rack
    names = tuple(_numbered("rack", int(rack[-1]) + 1))
    return dataclasses.replace(cluster, rack=rack, racks=names)


def add_nodes(cluster: Cluster, text: str) -> Cluster:
    """Add nodes to a cluster.

    They follow the others, which keep their numbers; they join the only rack, or form a rack of their own if there are
    several. Queues restricted to nodes may use new ones if they may use a node with as many GPUs of the same type, or
    if no old node is like them. Quotas stay as they are.

    Args:
        cluster: the nodes there are.
        text: ``N``: N nodes of the most frequent kind; ``NxG``: N nodes of G GPUs each, with the GPU type of the most
            frequent kind. A pool takes only ``NxG`` and grows by N times G GPUs.

    Raises:
        UsageError: the text is neither, or is ``N`` and the cluster is a pool or has no nodes.
    """
    match = re.fullmatch(r"(\d{1,7})(?:x(\d{1,7}))?", text.strip().lower(), re.ASCII)
    count, size = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    if match is None or count < 1 or (match[2] and size < 1) or count + len(cluster.nodes) > MOST_NODES:
        raise UsageError(f"--add-nodes {text!r}: expected a number of nodes (8), or nodes x GPUs of each (8x4)")
    if not size and (cluster.pool or not cluster.nodes):
        what = "a pool of GPUs without nodes" if cluster.pool else "a cluster without nodes"
        raise UsageError(f"--add-nodes {text!r}: there is no node to copy in {what}", hint=f"use {count}x8")
    if cluster.pool:
        change = note("{gpus:,} GPU{gpus||s} added to the pool", gpus=count * size)
        return dataclasses.replace(cluster, gpus=cluster.gpus + count * size, notes=(*cluster.notes, change))
    kinds = Counter(zip(cluster.gpus.tolist(), cluster.gpu_type.tolist(), strict=True))
    (gpus, gpu_type), _ = max(kinds.items(), key=lambda kind: (kind[1], kind[0]), default=((size, -1), 0))
    gpus = size or gpus
    old = len(cluster.nodes)
    new = np.arange(old, old + count, dtype=np.int64)
    alike = np.flatnonzero((cluster.gpus == gpus) & (cluster.gpu_type == gpu_type))
    racks = cluster.racks if len(cluster.racks) == 1 else (*cluster.racks, _free_names(cluster.racks, ADDED_RACK, 1)[0])
    rack = NamedValue("rack", repr(racks[-1]))
    change = note(
        "{count:,} node{count||s} of {gpus:,} GPU{gpus||s} added, in the rack {rack}",
        count=count,
        gpus=gpus,
        rack=rack,
    )
    return dataclasses.replace(
        cluster,
        name=f"{cluster.name} + {text.strip()}",
        nodes=cluster.nodes + _free_names(cluster.nodes, "added", count),
        gpus=np.append(cluster.gpus, np.full(count, gpus, np.int64)),
        gpu_type=np.append(cluster.gpu_type, np.full(count, gpu_type, np.int64)),
        cpus=_added(cluster.cpus, alike, count),
        mem_mb=_added(cluster.mem_mb, alike, count),
        rack=np.append(cluster.rack, np.full(count, len(racks) - 1, np.int64)),
        racks=racks,
        queue_nodes=tuple(
            own if own is None or (alike.size and not np.isin(alike, own).any()) else np.append(own, new)
            for own in cluster.queue_nodes
        ),
        notes=(*cluster.notes, change),
    )


def _added(values: Floats | None, alike: Ints, count: int) -> Floats | None:
    """A node property extended by `count` nodes like the first similar one; unknown if there is none."""
    if values is None:
        return None
    return np.append(values, np.full(count, values[alike[0]] if alike.size else math.nan))


def merged(down: Floats) -> Floats:
    """Down times sorted, with overlapping or adjacent ones of a node merged.

    Args:
        down: as in `Cluster`, shape (k, 3), in any order; rows that end before they begin are dropped.
    """
    down = down[down[:, 2] > down[:, 1]]
    down = down[np.lexsort((down[:, 2], down[:, 1], down[:, 0]))]
    rows: list[list[float]] = []
    for node, begin, end in down.tolist():
        if rows and rows[-1][0] == node and begin <= rows[-1][2]:
            rows[-1][2] = max(rows[-1][2], end)
        else:
            rows.append([node, begin, end])
    return np.array(rows, np.float64).reshape(-1, 3)


def _free_names(taken: Iterable[str], stem: str, count: int) -> tuple[str, ...]:
    """Unused names: the stem with a number, or the bare stem if one name is needed and it is free."""
    used = set(taken)
    if count == 1 and stem not in used:
        return (stem,)
    names = (f"{stem}{k}" for k in range(1, len(used) + count + 1))
    return tuple([name for name in names if name not in used][:count])


def _pool(name: str, gpus: int, workload: Workload) -> Cluster:
    return Cluster(
        name=name,
        nodes=("pool",),
        gpus=np.array([gpus], np.int64),
        rack=np.zeros(1, np.int64),
        gpu_type=np.full(1, -1, np.int64),
        racks=(ONE_RACK,),
        pool=True,
        quota=np.full(len(workload.queues), np.inf),
        queue_nodes=(None,) * len(workload.queues),
        notes=(
            note(
                "{gpus:,} GPU{gpus||s} without places: racks, nodes and fragmentation do not exist",
                gpus=gpus,
            ),
        ),
    )


@dataclass(frozen=True)
class _Group:
    """Equal nodes."""

    count: int
    gpus: int
    name: str | None = None
    gpu_type: str | None = None
    rack: str | None = None
    per_rack: int | None = None
    cpus: float | None = None
    mem_mb: float | None = None


def _assemble(name: str, groups: Sequence[_Group], workload: Workload) -> Cluster:
    total, unnamed = sum(g.count for g in groups), sum(g.count for g in groups if g.name is None)
    fresh = iter(_numbered("s", unnamed))
    nodes: list[str] = []
    racks: dict[str, int] = {}
    rack = np.zeros(total, np.int64)
    types = list(workload.gpu_types)
    types += sorted({g.gpu_type for g in groups if g.gpu_type is not None} - set(types))
    for number, g in enumerate(groups, 1):
        place = len(nodes)
        if g.name is None:
            nodes += [next(fresh) for _ in range(g.count)]
        else:
            nodes += _numbered(g.name, g.count) if g.count > 1 else [g.name]
        for k in range(g.count):
            stem = g.name or f"group{number}"
            of_it = g.rack or (f"{stem}-rack{k // g.per_rack + 1}" if g.per_rack else ONE_RACK)
            rack[place + k] = racks.setdefault(of_it, len(racks))
    return Cluster(
        name=name,
        nodes=tuple(nodes),
        gpus=np.repeat([g.gpus for g in groups], [g.count for g in groups]).astype(np.int64),
        rack=rack,
        gpu_type=np.repeat(
            [-1 if g.gpu_type is None else types.index(g.gpu_type) for g in groups], [g.count for g in groups]
        ).astype(np.int64),
        racks=tuple(racks),
        pool=False,
        quota=np.full(len(workload.queues), np.inf),
        queue_nodes=(None,) * len(workload.queues),
        gpu_types=tuple(types) if len(types) > len(workload.gpu_types) else (),
        cpus=_each(groups, [g.cpus for g in groups]),
        mem_mb=_each(groups, [g.mem_mb for g in groups]),
    )


def _each(groups: Sequence[_Group], values: list[float | None]) -> Floats | None:
    """A property of each node of some groups; None if unknown for all."""
    if all(value is None for value in values):
        return None
    known = [math.nan if value is None else value for value in values]
    return np.repeat(known, [g.count for g in groups]).astype(np.float64)


def _numbered(stem: str, count: int) -> list[str]:
    width = len(str(count))
    return [f"{stem}{k:0{width}}" for k in range(1, count + 1)]


def _with_present_keys(found: Any) -> Any:
    """Replace the keys of version 0.1, ``servers`` and ``server``, by ``nodes`` and ``node``."""
    if isinstance(found, list):
        return [_with_present_keys(each) for each in found]
    if not isinstance(found, dict):
        return found
    return {
        {"servers": "nodes", "server": "node"}.get(key, key): _with_present_keys(each) for key, each in found.items()
    }


@dataclass
class _File:
    """Reads a TOML file; errors name the file and the key."""

    path: str
    workload: Workload
    notes: list[Note] = field(default_factory=list)

    def cluster(self, found: dict[str, Any]) -> Cluster:
        """The cluster that the file describes."""
        found = _with_present_keys(found)
        self.keys(found, "", "")
        if ("pool" in found) == ("nodes" in found):
            self.wrong("", "both pool and nodes" if "pool" in found else "neither", "either pool or [[nodes]]")
        if "pool" in found:
            cluster = _pool(Path(self.path).name, self.whole(found, "", "pool", 10**10), self.workload)
            for key in ("queues", "down"):
                if key in found:
                    self.wrong(key, "it beside pool", "[[nodes]], for a pool has none")
            cpus, memory = (self.number(found, "", key) if key in found else None for key in ("cpus", "mem_mb"))
            cluster = dataclasses.replace(
                cluster,
                cpus=None if cpus is None else np.array([cpus]),
                mem_mb=None if memory is None else np.array([memory]),
            )
            groups: list[_Group] = []
        else:
            for key in ("cpus", "mem_mb"):
                if key in found:
                    self.wrong(key, "it beside [[nodes]]", "it under each of [[nodes]], or beside pool")
            groups = [self.group(table, at) for at, table in self.tables(found, "nodes")]
            if sum(g.count for g in groups) > MOST_NODES:
                self.wrong("nodes", f"{sum(g.count for g in groups)} nodes", f"at most {MOST_NODES}")
            cluster = _assemble(Path(self.path).name, groups, self.workload)
            twice = [name for name, times in Counter(cluster.nodes).items() if times > 1]
            if twice:
                self.wrong("nodes", f"two nodes called {twice[0]!r}", "names that differ")
        quota = self.quotas(found)
        return dataclasses.replace(
            cluster,
            quota=quota,
            quota_source="configured" if np.isfinite(quota).any() else "none",
            queue_nodes=self.queues(found, cluster, groups),
            down=self.down(found, cluster),
            notes=(*cluster.notes, *self.notes),
        )

    def group(self, table: dict[str, Any], at: str) -> _Group:
        """One of ``[[nodes]]``."""
        self.keys(table, "nodes", at)
        if "rack" in table and "per_rack" in table:
            self.wrong(at, "both rack and per_rack", "one of them")
        return _Group(
            count=self.whole(table, at, "count", MOST_NODES) if "count" in table else 1,
            gpus=0 if table.get("gpus") == 0 and "cpus" in table else self.whole(table, at, "gpus", 10**7),
            name=self.text(table, at, "name"),
            gpu_type=self.text(table, at, "gpu_type"),
            rack=self.text(table, at, "rack"),
            per_rack=self.whole(table, at, "per_rack", MOST_NODES) if "per_rack" in table else None,
            cpus=self.number(table, at, "cpus") if "cpus" in table else None,
            mem_mb=self.number(table, at, "mem_mb") if "mem_mb" in table else None,
        )

    def quotas(self, found: dict[str, Any]) -> Floats:
        """GPUs of each queue's quota; inf if it has none."""
        quota = np.full(len(self.workload.queues), np.inf)
        table = found.get("quotas", {})
        if not isinstance(table, dict):
            self.wrong("quotas", repr(table), "a table of GPUs by queue")
        given = {name: self.number(table, "quotas", name) for name in table}
        for name, gpus in given.items():
            if name in self.workload.queues:
                quota[self.workload.queues.index(name)] = gpus
        self.strangers("quotas", given)
        return quota

    def queues(self, found: dict[str, Any], cluster: Cluster, groups: list[_Group]) -> tuple[Ints | None, ...]:
        """The nodes that each queue may use."""
        place = {name: np.array([k]) for k, name in enumerate(cluster.nodes)}
        first = 0
        for g in groups:
            if g.name is not None:
                members = np.arange(first, first + g.count)
                place[g.name] = np.union1d(place[g.name], members) if g.name in place else members
            first += g.count
        own: dict[str, Ints] = {}
        for at, table in self.tables(found, "queues"):
            self.keys(table, "queues", at)
            queue, names = self.text(table, at, "name"), table.get("nodes")
            if queue is None or queue in own:
                self.wrong(f"{at}.name", repr(queue) if queue else "none", "the name of a queue, each of them once")
            if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
                self.wrong(f"{at}.nodes", repr(names), 'a list of names such as ["a", "b01"]')
            for name in names:
                if name not in place:
                    self.wrong(f"{at}.nodes", repr(name), "the name of a group or of a node of this file")
            own[queue] = np.unique(np.concatenate([place[name] for name in names])).astype(np.int64)
        self.strangers("queues", own)
        return tuple(own.get(queue) for queue in self.workload.queues)

    def down(self, found: dict[str, Any], cluster: Cluster) -> Floats | None:
        """When nodes are down."""
        rows = []
        for at, table in self.tables(found, "down"):
            self.keys(table, "down", at)
            node = table.get("node")
            if node not in cluster.nodes:
                self.wrong(f"{at}.node", repr(node), "the name of a node of this file")
            begin = self.number(table, at, "from_s", least=-1e12)
            end = self.number(table, at, "until_s", least=-1e12) if "until_s" in table else math.inf
            if end <= begin:
                self.wrong(f"{at}.until_s", f"{end:g}", f"more than from_s, {begin:g}")
            rows.append((cluster.nodes.index(node), begin, end))
        return merged(np.array(rows, np.float64)) if rows else None

    def strangers(self, key: str, names: Iterable[str]) -> None:
        """Note queues that no job is in: the file may serve several workloads."""
        unknown = [name for name in names if name not in self.workload.queues]
        if unknown:
            more = note(" and {more} more", more=len(unknown) - 5) if len(unknown) > 5 else note("")
            self.notes.append(
                note(
                    "{path}: {key} of queues that no job is in: {unknown}{more}",
                    path=NamedValue("path", self.path),
                    key=literal(key),
                    unknown=listed("queue", unknown, 5),
                    more=more,
                )
            )

    def keys(self, table: dict[str, Any], kind: str, at: str) -> None:
        """See that a table has no keys but those of its kind."""
        for key in table:
            if key not in _KEYS[kind]:
                self.wrong(f"{at}.{key}" if at else key, "it", f"only the keys {', '.join(_KEYS[kind])}")

    def tables(self, found: dict[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
        """The tables ``[[key]]`` with the name of each for errors."""
        given = found.get(key, [])
        if not isinstance(given, list) or not all(isinstance(table, dict) for table in given) or given == [{}]:
            self.wrong(key, repr(given), f"tables, each under a line [[{key}]]")
        if key == "nodes" and not given:
            self.wrong(key, "none", "at least one")
        return [(f"{key}[{k}]", table) for k, table in enumerate(given, 1)]

    def whole(self, table: dict[str, Any], at: str, key: str, most: int) -> int:
        """A whole number, at least 1."""
        value = table.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            where = f"{at}.{key}" if at else key
            self.wrong(where, "nothing" if value is None else repr(value), f"a whole number, 1 to {most}")
        return value

    def number(self, table: dict[str, Any], at: str, key: str, least: float = 0) -> float:
        """A finite number."""
        value = table.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < math.inf:
            bound = "" if least < 0 else f", at least {least:g}"
            where = f"{at}.{key}" if at else key
            self.wrong(where, "nothing" if value is None else repr(value), f"a finite number{bound}")
        return float(value)

    def text(self, table: dict[str, Any], at: str, key: str) -> str | None:
        """A text that is not empty, or None where the key is absent."""
        value = table.get(key)
        if value is not None and not (isinstance(value, str) and value.strip()):
            self.wrong(f"{at}.{key}", repr(value), "a text that is not empty")
        return value

    def wrong(self, key: str, found: str, expected: str) -> NoReturn:
        """Make the error, with what was found and expected."""
        raise InputError(f"{key or 'the file'}: found {found}, expected {expected}", path=self.path)
