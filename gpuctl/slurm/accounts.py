"""Associations and QOS as sacctmgr prints them: ``dump``, ``-P show assoc`` and ``-P show qos``.

Source: sacctmgr(1) of Slurm 22.05. An association inherits from the accounts above it what it does not state: its
priority, its QOS, its default QOS and the limits that `gpuctl.slurm.limits.Limits.below` names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.slurm.associations import USE_PARENT, Association
from gpuctl.slurm.delimited import cells_of, header_line
from gpuctl.slurm.dump import read_line
from gpuctl.slurm.limits import NO_LIMITS, Limits, limits_of
from gpuctl.slurm.partitions import mode_of, names_of
from gpuctl.slurm.units import exact_seconds, number, whole
from gpuctl.slurm.unmodelled import of_qos

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import BinaryIO

_SHARES_OF_PARENT = 2**31 - 1
"""What ``sacctmgr dump`` writes for ``Fairshare=parent``."""
MOST_DEEP = 1000
"""Accounts below accounts; deeper ones are refused."""
_SIGNED = re.compile(r"[+-]")
QOS_FLAGS = (
    *("DenyOnLimit", "EnforceUsageThreshold", "NoDecay", "NoReserve", "OverPartQOS", "PartitionMaxNodes"),
    *("PartitionMinNodes", "PartitionTimeLimit", "Relative", "RequiresReservation", "UsageFactorSafe"),
)
"""Flags of a QOS, as Slurm spells them."""


@dataclass(frozen=True)
class Qos:
    """The settings of a QOS for priorities, limits and preemption.

    Attributes:
        name: its name.
        priority: ``Priority``.
        usage_factor: ``UsageFactor``.
        preempts: the QOS whose jobs it preempts.
        unmodelled: flags and limits that are set but not modelled.
        limits: the modelled limits.
        flags: of `QOS_FLAGS`, in that spelling.
        preempt_mode: treatment of its preempted jobs; None: the cluster's.
        within: whether its jobs may preempt jobs of the same QOS (``PreemptMode=...,WITHIN``).
        preempt_exempt_s: ``PreemptExemptTime``: seconds that a job runs before it can be preempted; None: the
            cluster's.
        grace_s: ``GraceTime``: seconds that a job gets when it is preempted.
    """

    name: str
    priority: int = 0
    usage_factor: float = 1.0
    preempts: tuple[str, ...] = ()
    unmodelled: tuple[tuple[str, str], ...] = ()
    limits: Limits = NO_LIMITS
    flags: frozenset[str] = frozenset()
    preempt_mode: str | None = None
    within: bool = False
    preempt_exempt_s: float | None = None
    grace_s: float = 0.0


def read_dump(stream: BinaryIO) -> tuple[Association, ...]:
    """Read the associations of ``sacctmgr dump``, the root first.

    Raises:
        InputError: a line cannot be read.
    """
    rows, parent = [Association("root")], "root"
    for line in numbered_lines(stream):
        if not line.data.strip() or line.data.lstrip().startswith(b"#"):
            continue
        try:
            kind, name, options = read_line(line.text())
            row = _association(options)
        except (RowError, InputError) as bad:
            raise InputError(f"sacctmgr dump, line {line.line_no}: {bad}") from None
        if kind == "parent":
            parent = name
        elif kind == "cluster":
            rows[0] = row._replace(account="root")
        elif kind == "account":
            rows.append(row._replace(account=name, parent=parent))
        else:
            rows.append(row._replace(account=parent, user=name, partition=options.get("partition") or None))
    return _inherited(rows)


def read_assoc(stream: BinaryIO) -> tuple[Association, ...]:
    """Read the associations of ``sacctmgr -P show assoc``; the command prints parents only on request.

    It must have the columns Account, User, Share (or Fairshare), Priority and ParentName: request them with
    ``format=account,parentname,user,partition,fairshare,priority`` and the limits.

    Raises:
        InputError: a column is missing, or a line cannot be read.
    """
    lines = numbered_lines(stream)
    hint = (
        "sacctmgr -P show assoc format=account,parentname,user,partition,fairshare,priority,grptres,grpjobs,"
        "grpsubmit,grpwall,maxtres,maxtrespernode,maxjobs,maxsubmit,maxwall,qos,defaultqos; or use sacctmgr dump"
    )
    layout = header_line(lines, has_parents, "`sacctmgr -P show assoc` with parents", hint)
    rows = []
    for line in lines:
        if not line.data.strip():
            continue
        try:
            cells = cells_of(line.text(), layout, None)
            row = _association(cells)
        except (RowError, InputError) as bad:
            raise InputError(f"sacctmgr show assoc, line {line.line_no}: {bad}") from None
        user = cells["user"] or None
        above = None if user or cells["account"] == "root" else cells.get("parname") or cells["parentname"] or "root"
        rows.append(
            row._replace(account=cells["account"], user=user, parent=above, partition=cells.get("partition") or None)
        )
    return _inherited(rows)


def _association(cells: Mapping[str, str]) -> Association:
    """Return the settings in a row, except its owner."""
    priority = cells.get("priority")
    qos = cells.get("qos") or cells.get("qoslevel")
    return Association(
        "",
        shares=_shares(cells.get("share") or cells.get("fairshare") or "1"),
        priority=whole("Priority", priority) if priority else None,
        limits=limits_of(cells),
        qos=names_of(qos) if qos else None,
        default_qos=cells.get("defaultqos") or cells.get("defqos") or None,
    )


def has_parents(columns: tuple[str, ...]) -> bool:
    """Return whether the columns of ``show assoc`` include the parent of each account."""
    return {"account", "user"} <= set(columns) and bool({"parname", "parentname"} & set(columns))


def _inherited(rows: Iterable[Association]) -> tuple[Association, ...]:
    """Return the same associations, each with the values inherited from the accounts above it."""
    rows = tuple(rows)
    accounts = {row.account: row for row in rows if row.user is None}
    known: dict[str, Association] = {}

    def filled(row: Association) -> Association:
        """Return an association's values, including inherited ones, if all accounts above it are in ``known``."""
        above = known.get(row.account if row.user is not None else row.parent or "")
        if above is None:
            return row._replace(qos=_allowed(row.qos, None))
        return row._replace(
            priority=above.priority if row.priority is None else row.priority,
            limits=row.limits.below(above.limits),
            qos=_allowed(row.qos, above.qos),
            default_qos=row.default_qos or above.default_qos,
        )

    for name in accounts:
        chain: list[str] = []
        at: str | None = name
        while at is not None and at in accounts and at not in known and at not in chain:
            chain.append(at)
            at = accounts[at].parent
            if len(chain) > MOST_DEEP:
                raise InputError(f"account {name} is more than {MOST_DEEP} accounts below the root")
        for account in reversed(chain):
            known[account] = filled(accounts[account])
    return tuple(known[row.account] if row is accounts.get(row.account) else filled(row) for row in rows)


def _allowed(own: tuple[str, ...] | None, above: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the QOS that an association may use; names with + or - change those of the account above."""
    if own is None:
        return above
    if not all(_SIGNED.match(name) for name in own):
        return own
    found = dict.fromkeys(above or ())
    for name in own:
        if name.startswith("+"):
            found[name[1:]] = None
        else:
            found.pop(name[1:], None)
    return tuple(found)


def _shares(text: str) -> int:
    if text.lower() == "parent":
        return USE_PARENT
    shares = whole("Fairshare", text)
    return USE_PARENT if shares == _SHARES_OF_PARENT else shares


def read_qos(stream: BinaryIO) -> dict[str, Qos]:
    """Read ``sacctmgr -P show qos``; the dump does not describe QOS.

    Raises:
        InputError: the first line is not its header, or a cell cannot be read.
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
            found[cells["name"]] = _qos(cells)
        except (RowError, InputError) as bad:
            raise InputError(f"sacctmgr show qos, line {line.line_no}: {bad}") from None
    return found


def _qos(cells: Mapping[str, str]) -> Qos:
    name = cells["name"]
    mode, options = mode_of(f"QOS {name}", cells.get("preemptmode", ""))
    exempt = cells.get("preemptexempttime", "")
    spelled = {flag.lower(): flag for flag in QOS_FLAGS}
    return Qos(
        name,
        whole("Priority", cells["priority"] or "0"),
        number("UsageFactor", cells.get("usagefactor") or "1"),
        names_of(cells.get("preempt", "")),
        of_qos(name, cells),
        limits=limits_of(cells),
        flags=frozenset(spelled[flag.lower()] for flag in names_of(cells.get("flags", "")) if flag.lower() in spelled),
        # "off" unsets a QOS's own mode, as "cluster" does (sacctmgr(1))
        preempt_mode=None if mode == "OFF" else mode,
        within="WITHIN" in options,
        preempt_exempt_s=exact_seconds("PreemptExemptTime", exempt) if exempt not in {"", "-1"} else None,
        grace_s=exact_seconds("GraceTime", cells.get("gracetime") or "0:0:0") or 0.0,
    )
