"""``sacct --json``: one object with an array of jobs, from v0.0.38 (Slurm 22.05) to today.

A row of the ledger is one job object, one of its steps, or one stretch of the array that is no JSON. 22.05 lists every
attempt of a job; later releases do so only with ``-D``. 22.05 states exit code 0 of whatever no signal ended:
what it reports about jobs that did not complete is not believed, and a job that failed has the quirk
``exit_code_not_told``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.json_walk import jobs
from gpuctl.ingest.slurm.json_fields import COLUMNS, fields, hides_exit_codes, step_fields, steps
from gpuctl.ingest.slurm.record_batches import Batches
from gpuctl.ingest.slurm.records import Records

if TYPE_CHECKING:
    from gpuctl.ingest.read.json_stream import Element

_KEYS = (b'"association"', b'"allocation_nodes"', b'"job_id"')
_YAML_KEYS = (b"association:", b"allocation_nodes:", b"job_id:")
_UNSTATED_EXIT_CODES = "SET quirks = list_append(quirks, 'exit_code_not_told')"
_FAILED = "cluster = $cluster AND source = $source AND state = 'failed' AND exit_code IS NULL"
_COMMANDS = (b'"sacct"', b'"openapi\\/dbv', b'"openapi/dbv')


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read accounting records into jobs, attempts and placements; see `Records` for what becomes of them.

    No more is held than one job object, one read ahead, and a batch of its fields.

    Raises:
        InputError: there is no array of jobs, or this is YAML.
    """
    records = Records(sink)
    batches = Batches(COLUMNS, records.add)
    old = False
    for element in jobs(stream):
        try:
            if element.fault is not None:
                raise RowError(element.fault)
            batches.add(element.line_no, fields(element.value))
            for step in steps(element.value):
                _add_step(batches, sink, element, step)
            old = old or hides_exit_codes(element.value)
        except RowError as bad:
            sink.seen()
            sink.reject(element.line_no, str(bad), element.raw)
    batches.flush()
    records.finish()
    if old:
        sink.after(_forget_exit_codes)


def _add_step(batches: Batches, sink: Sink, element: Element, step: object) -> None:
    """Take a step of a job, or reject it alone."""
    try:
        batches.add(element.line_no, step_fields(element.value, step))
    except RowError as bad:
        sink.seen()
        sink.reject(element.line_no, str(bad), element.raw)


def _forget_exit_codes(sink: Sink) -> None:
    for table in ("job_rows", "attempt_rows"):
        sink.execute(
            f"UPDATE {table} {_UNSTATED_EXIT_CODES} WHERE {_FAILED}", {"cluster": sink.cluster, "source": sink.source}
        )


def sniff(name: str, head: bytes) -> str | None:
    """Recognise jobs that have an association, which sacct prints and squeue does not; the same in YAML."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith((b"{", b"[")):
        if all(key in text for key in _KEYS):
            return "JSON objects of jobs with their association, as sacct prints"
        if b'"jobs"' in text and any(command in text for command in _COMMANDS):
            return "JSON of sacct with an array of jobs"
    elif b"jobs:" in text and all(key in text for key in _YAML_KEYS):
        return "YAML of sacct, which cannot be read; JSON can"
    return None


FORMAT = Format(
    name="slurm-sacct-json",
    title="Slurm accounting: sacct --json (v0.0.38 to v0.0.45)",
    fills=("jobs", "attempts", "placements", "queues", "step_usage", "job_gpu_summary"),
    file_names=("sacct.json",),
    order=21,  # if several forms describe the same attempts, the fuller one counts
    zoned=True,
    parser_version=2,
    sniff=sniff,
    load=load,
    alone=True,
)
