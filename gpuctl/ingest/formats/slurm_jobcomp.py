"""Slurm's job completion file (``JobCompType=jobcomp/filetxt``): one record per line for every job that has ended.

A row of the ledger is one record; a job name with line ends in it makes it several lines. What such a file does not
have: jobs that have not ended, GPUs other than requested, GPU types, why a job waited, which scheduler started it, how
long it was suspended; that an attempt was requeued is stated only of those that their user or an operator requeued.
Its times are those of the slurmctld host, without a zone.

A job that lost its nodes, was preempted or changed its size may go on with the submission time that it had, and has
a record for each time it ran. Of such a further record the submission is taken to be the end of the one before, as
Slurm resets it elsewhere; unless another form of accounting, which has the last of them only, was loaded before. Of a
job whose size changed the file does not state when it first started: what it held until then is unknown.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.jobcomp_fields import COLUMNS, ENDS, FIRST_KEY, NO_NODES, REVOKED, fields
from gpuctl.ingest.slurm.record_batches import Batches
from gpuctl.ingest.slurm.records import Records
from gpuctl.slurm.scontrol import records
from gpuctl.slurm.times import instants

_SIGN = re.compile(rb"^JobId=\d+ UserId=.{1,200} (?:Job)?Name=.* JobState=[A-Z_]+ Partition=", re.MULTILINE)

_GO_ON = frozenset({"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REQUEUED", "RESIZING"})


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read completion records into jobs, attempts and placements; see `Records` for what becomes of them."""
    into = Records(sink)
    batches = Batches(COLUMNS, into.add)
    back: dict[str, tuple[str, str]] = {}
    for record in records(stream, FIRST_KEY, ENDS):
        try:
            if record.fault is not None:
                raise RowError(record.fault)
            batches.add(record.line_no, _apart(fields(record.text), back, sink))
        except RowError as bad:
            sink.seen()
            sink.reject(record.line_no, str(bad), record.text)
    batches.flush()
    into.finish()


def _apart(fields: dict[str, str], back: dict[str, tuple[str, str]], sink: Sink) -> dict[str, str]:
    """Give an attempt a submission time of its own if it has that of the attempt before.

    Args:
        fields: of one record.
        back: job -> submission and end of its last attempt, of the jobs that may go on, or that
            another cluster ran (`REVOKED`); is kept up to date.
        sink: of the cluster.
    """
    job, submit = fields["JobIDRaw"], fields["Submit"]
    before = back.get(job)
    if before is not None and before[1] == REVOKED and fields["NodeList"] == NO_NODES:
        return {**fields, "State": REVOKED}
    if fields["State"] in _GO_ON:
        back[job] = submit, fields["End"]
    if fields["State"] == REVOKED:
        back[job] = submit, REVOKED
    if before is None or before[0] != submit:
        return fields
    if fields["State"] == "RESIZING" and fields["Start"] == "Unknown":
        # the second change of a size: what it ends began with the first one
        fields = {**fields, "Start": before[1]}
    return fields if _known(job, fields["Start"], sink) else {**fields, "Submit": before[1]}


def _known(job: str, start: str, sink: Sink) -> bool:
    """Whether the store has an attempt of this job with this start."""
    import polars as pl

    at = instants(pl.Series([start]), sink.timezone).utc
    sql = "SELECT job FROM attempts WHERE cluster = $cluster AND job = $job AND start_ts = $start::TIMESTAMPTZ LIMIT 1"
    return bool(sink.query(sql, {"cluster": sink.cluster, "job": job, "start": at[0]}).height)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a record: JobId, UserId and Name before JobState and Partition."""
    return "lines JobId=… UserId=… Name=… JobState=…" if _SIGN.search(head) else None


FORMAT = Format(
    name="slurm-jobcomp",
    title="Slurm job completion file (jobcomp/filetxt)",
    fills=("jobs", "attempts", "placements", "queues"),
    file_names=("jobcomp.log", "slurm_jobcomp.log"),
    order=24,  # if several forms describe the same attempts, the fuller one counts
    parser_version=2,
    sniff=sniff,
    load=load,
)
