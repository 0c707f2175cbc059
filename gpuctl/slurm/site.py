"""Reads a site's Slurm configuration from files or directories, and detects the kind of each file.

Only the given paths are opened: an ``Include`` is looked for next to its slurm.conf, by its file name alone.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import read_head, read_whole
from gpuctl.core.path_checks import exists, is_folder
from gpuctl.slurm import recognise
from gpuctl.slurm.accounts import read_assoc, read_dump, read_qos
from gpuctl.slurm.config import read_conf, read_running
from gpuctl.slurm.delimited import header_in
from gpuctl.slurm.limits import NO_LIMITS
from gpuctl.slurm.nodes import read_shown_nodes
from gpuctl.slurm.topology import read_topology
from gpuctl.slurm.unmodelled import of_assoc, of_dump

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from gpuctl.slurm.associations import Association
    from gpuctl.slurm.config import Site

CONF, RUNNING, PARTITIONS, NODES, DUMP, ASSOC, QOS, TOPOLOGY = (
    "slurm.conf",
    "scontrol show config",
    "scontrol show partitions",
    "scontrol show node",
    "sacctmgr dump",
    "sacctmgr show assoc",
    "sacctmgr show qos",
    "topology.conf",
)
_EXPECTED = f"{CONF}, what {DUMP}, {QOS} or {ASSOC} printed, or a directory of them"
_HEAD = 65_536
_T = TypeVar("_T")
_MOST_FILES = 10_000


def conf_paths(text: str) -> list[Path]:
    """Return the paths in the parameter ``conf`` of a policy, separated by `os.pathsep` (a colon).

    Raises:
        UsageError: there is no path.
    """
    paths = [Path(part) for part in text.split(os.pathsep) if part.strip()]
    if not paths:
        raise UsageError("no configuration of Slurm is named", hint=f"--slurm-conf PATH: {_EXPECTED}")
    return paths


def read_site(paths: Sequence[Path]) -> Site:
    """Read one site's configuration.

    Args:
        paths: files, and directories whose files are examined (not recursively). There must be one slurm.conf, or the
            output of ``scontrol show config``, ``scontrol show partitions`` and ``scontrol show node``. For accounts,
            ``sacctmgr dump`` takes precedence over ``sacctmgr show assoc``. Other files of a directory are skipped;
            such a file named itself is an error.

    Returns:
        the combined settings; ``unmodelled`` lists settings that are not modelled, and limits that
        ``AccountingStorageEnforce`` does not enforce.

    Raises:
        UsageError: a path does not exist, or slurm.conf is missing.
        InputError: a file cannot be read, is of another kind, or there are two of a kind; the message names the file.
    """
    found = _SiteFiles()
    for path in paths:
        if is_folder(path):
            found.directory(path)
        elif exists(path):
            found.file(path)
        else:
            raise UsageError(f"--slurm-conf {str(path)[:200]}: no such file or directory", hint=f"expected {_EXPECTED}")
    site = found.settings()
    used = [kind for kind in (QOS, DUMP if DUMP in found.kinds else ASSOC, TOPOLOGY) if kind in found.kinds]
    files = {kind: found.path(kind) for kind in used}
    qos = _read(files[QOS], read_qos) if QOS in used else {}
    unmodelled = [line for one in qos.values() for line in one.unmodelled]
    associations: tuple[Association, ...] = ()
    if DUMP in used:
        associations = _read(files[DUMP], read_dump)
        unmodelled += _read(files[DUMP], of_dump)
    elif ASSOC in used:
        associations = _read(files[ASSOC], read_assoc)
        unmodelled += _read(files[ASSOC], of_assoc)
    switches = _read(files[TOPOLOGY], read_topology) if TOPOLOGY in used else {}
    site = replace(
        site,
        qos=qos,
        associations=associations,
        switches=switches,
        unmodelled=(*site.unmodelled, *unmodelled),
        files=(*site.files, *map(str, files.values())),
    )
    return replace(site, unmodelled=(*site.unmodelled, *_gaps(site)))


@dataclass
class _SiteFiles:
    """The files of each kind.

    Attributes:
        kinds: the files of each kind.
        named: kinds with an explicitly named file, which replaces those in directories.
    """

    kinds: dict[str, list[Path]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)

    def file(self, path: Path) -> None:
        """Add a named file.

        Raises:
            InputError: it is of no known kind.
        """
        kind = kind_of(path)
        if kind is None:
            raise InputError(f"is not a Slurm file that gpuctl reads; expected {_EXPECTED}", path=str(path))
        before = self.kinds.get(kind, []) if kind in self.named else []
        self.kinds[kind] = [*before, path]
        self.named.add(kind)

    def directory(self, folder: Path) -> None:
        """Add the files of a directory, except kinds with a named file.

        Raises:
            InputError: the directory cannot be read, or has too many files.
        """
        try:
            files = sorted(path for path in folder.iterdir() if path.is_file())
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", path=str(folder)) from error
        if len(files) > _MOST_FILES:
            raise InputError(f"has more than {_MOST_FILES} files", path=str(folder), hint="name the files themselves")
        kinds: dict[str, list[Path]] = {}
        for path in files:
            try:
                kind = kind_of(path)
            except InputError:
                continue  # others' files, such as slurmdbd.conf with its password, may be unreadable
            if kind is not None:
                kinds.setdefault(kind, []).append(path)
        for kind, members in kinds.items():
            if kind not in self.named:
                # files that slurm.conf includes look like slurm.conf
                usual = [path for path in members if path.name == kind] or members
                self.kinds.setdefault(kind, []).extend(usual)

    def path(self, kind: str) -> Path:
        """Return the single file of a kind.

        Raises:
            InputError: there are several.
        """
        [path, *others] = dict.fromkeys(self.kinds[kind])
        if others:
            names = ", ".join(str(other) for other in others[:5])
            raise InputError(f"is one of several {kind}, with {names}", path=str(path), hint="name the one to use")
        return path

    def settings(self) -> Site:
        """Return the settings of slurm.conf or, if there is none, of scontrol's output.

        Raises:
            UsageError: there is neither.
            InputError: it cannot be read.
        """
        if CONF in self.kinds:
            path = self.path(CONF)
            return replace(_read_conf(path), files=(str(path),))
        if RUNNING in self.kinds and PARTITIONS in self.kinds:
            used = [self.path(kind) for kind in (RUNNING, PARTITIONS, NODES) if kind in self.kinds]
            nodes = _read(used[2], read_shown_nodes) if NODES in self.kinds else None
            with _opened(used[1]) as rows:
                site = _read(used[0], lambda stream: read_running(stream, rows, nodes))
            return replace(site, files=tuple(map(str, used)))
        raise UsageError(
            "--slurm-conf: there is no slurm.conf among these files",
            hint=f"expected {_EXPECTED}; found: {', '.join(self.kinds) or 'none of them'}",
        )


def kind_of(path: Path) -> str | None:
    """Return the kind of a file, from its first 64 KiB; None if it is of no known kind.

    Raises:
        InputError: it cannot be read.
    """
    try:
        head = read_head(path, _HEAD)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=str(path)) from error
    name = path.name
    for kind, sniff in (
        (RUNNING, recognise.running_config),
        (PARTITIONS, recognise.partitions),
        (NODES, recognise.nodes),
        (DUMP, recognise.dump),
        (TOPOLOGY, recognise.topology),
        (CONF, recognise.conf),
    ):
        if sniff(name, head):
            return kind
    columns = set(header_in(head))
    if {"name", "priority"} <= columns and columns & {"preempt", "usagefactor", "flags", "grptres"}:
        return QOS
    # sshare also has accounts, users and a fair-share factor
    if {"account", "user"} <= columns and columns & {"share", "fairshare"} and not columns & {"jobid", "rawshares"}:
        return ASSOC
    return CONF if name == "slurm.conf" else None


def _opened(path: Path) -> BinaryIO:
    return io.BytesIO(read_whole(path))


def _read(path: Path, read: Callable[[BinaryIO], _T]) -> _T:
    """Read a file; errors name it."""
    with _opened(path) as stream:
        try:
            return read(stream)
        except InputError as bad:
            raise InputError(str(bad), path=str(path), hint=bad.hint) from None
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", path=str(path)) from error


def _read_conf(path: Path) -> Site:
    folder = path.absolute().parent.resolve()

    def open_include(name: str) -> BinaryIO:
        """Open a file next to slurm.conf; its directory part is ignored, and links out of the directory fail."""
        other = folder / Path(name).name
        if not other.is_file():
            raise InputError(f"includes {name}, but its directory has no {other.name}", hint="put it there")
        if not other.resolve().is_relative_to(folder):
            raise InputError(f"includes {name}, a link out of its directory", hint="put the file itself there")
        return _opened(other)

    return _read(path, lambda stream: read_conf(stream, open_include))


def _gaps(site: Site) -> list[tuple[str, str]]:
    """Return inconsistencies between the files, and unenforced limits."""
    found: list[tuple[str, str]] = []
    limited = [name for name, one in site.qos.items() if one.limits != NO_LIMITS]
    limited += [row.user or row.account for row in site.associations if row.limits != NO_LIMITS]
    if limited and not site.limits_hold:
        whose = f"those of {len(limited)} QOS and associations"
        found.append(
            (
                "AccountingStorageEnforce",
                f"does not include limits: {whose} are not enforced",
            )
        )
    for name, partition in site.partitions.items():
        if partition.qos and partition.qos not in site.qos:
            found.append((f"partition {name}", f"its QOS {partition.qos} is in no file: it has no limits here"))
    known = {node.name for node in site.nodes}
    for name, partition in site.partitions.items():
        strange = [node for node in partition.nodes if node not in known] if known else []
        if strange:
            found.append((f"partition {name}", f"{len(strange)} of its nodes have no NodeName, such as {strange[0]}"))
    return found
