"""Accounting text for tests: records with their fields by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuctl.ingest.formats.slurm_sacct import FORMAT
from tests.slurm_loading import OneSource, load, rows

if TYPE_CHECKING:
    from gpuctl.store.database import Store

DEFAULTS = {
    "JobIDRaw": "100",
    "JobID": "100",
    "JobName": "train",
    "User": "alice",
    "Account": "vision",
    "Partition": "gpu",
    "QOS": "normal",
    "State": "COMPLETED",
    "ExitCode": "0:0",
    "DerivedExitCode": "0:0",
    "Submit": "2026-11-20T10:00:00",
    "Eligible": "2026-11-20T10:00:10",
    "Start": "2026-11-20T10:01:00",
    "End": "2026-11-20T10:11:00",
    "Elapsed": "00:10:00",
    "Timelimit": "01:00:00",
    "NNodes": "1",
    "NCPUS": "8",
    "ReqTRES": "billing=8,cpu=8,gres/gpu=2,mem=16G,node=1",
    "AllocTRES": "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=16G,node=1",
    "NodeList": "gpu001",
    "Reason": "None",
    "Priority": "1000",
    "Flags": "SchedMain,StartReceived",
}

NEVER = {"Start": "None", "AllocTRES": "", "NodeList": "None assigned", "Elapsed": "00:00:00"}
PENDING = {**NEVER, "State": "PENDING", "Start": "Unknown", "End": "Unknown"}
FIRST = {"State": "REQUEUED", "ExitCode": "99:0", "End": "2026-11-20T10:02:00"}
SECOND = {
    "Submit": "2026-11-20T10:02:00",
    "Eligible": "2026-11-20T10:04:01",
    "Start": "2026-11-20T10:04:30",
    "End": "2026-11-20T10:14:30",
    "NodeList": "gpu002",
}
"""Two attempts of one job."""


def text(*records: dict[str, str], delimiter: str = "|", only: str = "") -> str:
    """A text of sacct; what a record does not say is as in `DEFAULTS`, its JobID as its JobIDRaw.

    Args:
        records: fields by name; those that `DEFAULTS` does not have are further columns.
        delimiter: between fields.
        only: the fields to have, blanks between; all unless given.
    """
    names = only.split() or list(dict.fromkeys([*DEFAULTS, *(name for record in records for name in record)]))
    records = tuple({"JobID": record.get("JobIDRaw", DEFAULTS["JobID"]), **record} for record in records)
    lines = [delimiter.join({**DEFAULTS, **record}.get(name, "") for name in names) for record in records]
    return "\n".join([delimiter.join(names), *lines]) + "\n"


def ingest(store: Store, *records: dict[str, str], source: int = 1, timezone: str = "UTC", **how: Any) -> OneSource:
    """Load records as one file."""
    return load(FORMAT, text(*records, **how), store, source=source, timezone=timezone)


def job(store: Store, *given: dict[str, str], **how: Any) -> dict[str, Any]:
    """The only job of some records."""
    assert ingest(store, *given, **how).rejects == []
    (only,) = rows(store, "jobs")
    return only


def attempt(store: Store, *given: dict[str, str], **how: Any) -> dict[str, Any]:
    """The only attempt of some records."""
    assert ingest(store, *given, **how).rejects == []
    (only,) = rows(store, "attempts")
    return only
