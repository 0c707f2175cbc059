"""Suspensions of jobs as measured, as CSV: ``job_id,suspend_s,resume_s``, and more columns if known.

``suspend_s`` is from the order to stop until the GPUs were free, ``resume_s`` from the new start until the job went on
with its work; ``loss_s`` is the time without progress in all. ``mode`` is ``epoch`` if the running epoch was
finished first, ``now`` if a checkpoint was written at once, ``abort`` if the epoch was lost; ``epoch_s`` is what
an epoch was expected to take and ``epoch_done_s`` how long this one had gone on, both as known at the order;
``epoch_left_s`` is what was left of it, as it turned out. One job may have many rows. Cells but the three may be empty;
other columns are not read. A row of the ledger is one line after the header.
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.traffic.profile_tables import Column, header_with, load_jobs, seconds

NEEDED = ("job_id", "suspend_s", "resume_s")
COLUMNS = (
    Column("job_id", "text", needed=True, stored="job"),
    seconds("suspend_s", needed=True),
    seconds("resume_s", needed=True),
    seconds("loss_s"),
    Column("model", "text"),
    Column("mode", "text", words=("epoch", "now", "abort")),
    Column("gpus", "real", most=1e6),
    Column("checkpoint_bytes", "real"),
    Column("dataset_bytes", "real"),
    seconds("epoch_s"),
    seconds("epoch_done_s"),
    seconds("epoch_left_s"),
)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read suspensions into ``suspensions``.

    Raises:
        InputError: the first line is not the header of such a file.
    """
    load_jobs(stream, sink, "suspensions", NEEDED, COLUMNS, what="a CSV of suspensions", once=False)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a header that has the needed columns."""
    del name
    return header_with(NEEDED, head)


FORMAT = Format(
    name="suspensions",
    title="Suspensions of jobs as measured, CSV (job_id,suspend_s,resume_s)",
    fills=("suspensions",),
    file_names=("suspensions.csv",),
    order=40,
    zoned=True,
    parser_version=2,
    sniff=sniff,
    load=load,
    alone=True,
)
