"""Jobs whose shape is known, as CSV: ``job_id,model,batch,samples,gpus``, and ``epochs`` and more columns if known.

``batch`` is the samples that one GPU takes a step, ``samples`` those of one epoch; ``dataset_bytes`` is what one epoch
reads; ``validation_samples`` are evaluated in addition, ``validation_bytes`` of ``dataset_bytes`` are read for that.
Measured values may be added: ``epoch_s`` (an epoch that is not the first), ``first_epoch_s``,
``run_time_s``, ``cached`` (true if later epochs are read from memory). Cells except ``job_id`` and ``model`` may be
empty; other columns are not read. A row of the ledger is one line after the header; blank lines do not count.
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.formats import suspensions
from gpuctl.ingest.traffic.profile_tables import Column, header_with, load_jobs, seconds

NEEDED = ("job_id", "model", "batch", "samples", "gpus")
COLUMNS = (
    Column("job_id", "text", needed=True, stored="job"),
    Column("model", "text", needed=True),
    Column("batch", "whole", least=1),
    Column("samples", "whole", least=1),
    Column("gpus", "real", most=1e6),
    Column("epochs", "whole", least=1),
    Column("family", "text"),
    Column("user", "text"),
    Column("dataset_bytes", "real"),
    Column("checkpoint_bytes", "real"),
    Column("validation_samples", "real"),
    Column("validation_bytes", "real"),
    seconds("epoch_s"),
    seconds("first_epoch_s"),
    seconds("run_time_s"),
    Column("cached", "yes"),
)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs into ``profiles``; of several rows of one job the first is taken.

    Raises:
        InputError: the first line is not the header of such a file.
    """
    load_jobs(stream, sink, "profiles", NEEDED, COLUMNS, what="a CSV of profiled jobs", once=True)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a header that has all the needed columns, and no suspensions."""
    del name
    return None if header_with(suspensions.NEEDED, head) else header_with(NEEDED, head)


FORMAT = Format(
    name="profile-jobs",
    title="Profiled jobs, CSV (job_id,model,batch,samples,gpus,epochs)",
    fills=("profiles",),
    file_names=("jobs.csv",),
    order=40,
    zoned=True,
    parser_version=2,
    sniff=sniff,
    load=load,
)
