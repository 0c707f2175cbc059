"""``squeue --json``, ``sinfo --json`` and ``scontrol show node|job|partition --json``: what their texts state, as JSON.

A row of the ledger is one element of the array, or a stretch of it that is no JSON. Nodes and rows of sinfo fill what
``scontrol show node`` does, partitions what ``scontrol show partition`` does, jobs what ``scontrol show job -d`` does.
If the answer states when it was so (``last_update``, 23.11 and later), it is a sample of the queue or the nodes,
too; 22.05 does not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.core.local_time import LATEST_S
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.core.job_rows import add_queues
from gpuctl.ingest.formats import slurm_job_detail, slurm_sinfo_samples
from gpuctl.ingest.formats import slurm_squeue_samples as squeue
from gpuctl.ingest.read.json_walk import Shape, documents, has_array
from gpuctl.ingest.slurm.json_fields import number
from gpuctl.ingest.slurm.site import state_json
from gpuctl.ingest.slurm.site.job_gpus import stated_gpus
from gpuctl.ingest.slurm.site.machines import Rows, put_machines, put_members, put_partitions
from gpuctl.ingest.slurm.site.reconcile import reconcile
from gpuctl.slurm.machines import Machine, node_of
from gpuctl.slurm.partitions import partition_of

if TYPE_CHECKING:
    from gpuctl.ingest.slurm.site.state_json import Json

_KINDS = {
    b'"jobs"': (b'"job_state"', b'"submit_time"'),
    b'"nodes"': (b'"real_memory"', b'"gres_used"'),
    b'"sinfo"': (b'"partition"', b'"gres"'),
    b'"partitions"': (b'"nodes"', b'"qos"'),
}
"""The array's name, and what its elements have."""
_OF_SACCT = (b'"association"', b'"sacct"', b'"openapi\\/dbv', b'"openapi/dbv')
_META = re.compile(rb'"[Ss]lurm"\s{0,9}:\s{0,9}\{')
_RECORD = re.compile(r'\{\s{0,40}"(?:account|architecture|port|node|name|alternate|nodes)"\s{0,9}:')
_SHAPE = Shape(
    frozenset(name.decode()[1:-1] for name in _KINDS),
    frozenset({"job_id", "real_memory", "gres", "node_sets"}),
    _RECORD,
    "an object with an array jobs, nodes, sinfo or partitions",
    "write it again with: squeue --json, sinfo --json or scontrol show node --json",
)


class _Elements:
    """The content of the elements until it is written."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._machines: list[Machine] = []
        self._known: set[str] = set()
        self._members: list[tuple[str, str]] = []
        self._partitions: dict[str, str | None] = {}
        self._in_partition: list[tuple[str, str]] = []
        self._exact = Rows(sink, "exact_placements", slurm_job_detail.KINDS)
        self._waiting: list[tuple[str | None, ...]] = []
        self._used: dict[str, tuple[str, float | None, str | None]] = {}

    def take(self, value: object) -> None:
        """Take one element.

        Raises:
            RowError: it is not a job, node, row of sinfo or partition.
        """
        if not isinstance(value, dict):
            raise RowError("not an object")
        if "job_id" in value:
            self._job(value)
        elif "real_memory" in value:
            self._node(value)
        elif "gres" in value and "node" in value:
            for node in state_json.sinfo_nodes(value):
                self._node(node, again=True)
        elif "name" in value and "nodes" in value:
            found = state_json.partition_fields(value)
            name, qos, machines = partition_of(found)
            self._partitions[name] = qos
            self._in_partition += [(name, machine) for machine in machines]
        else:
            raise RowError("no job, node, row of sinfo or partition")

    def _job(self, job: Json) -> None:
        submit, start = _instant(job, "submit_time"), _instant(job, "start_time")
        held, total = state_json.job_gpus(job), stated_gpus(state_json.job_fields(job))
        waiting = squeue.read_jobs(state_json.queue_cells(job))
        for row in slurm_job_detail.Detail(state_json.job_id(job), submit, start, held, total).rows():
            self._exact.add(*row)
        self._waiting += squeue.tasks_of(waiting)

    def _node(self, node: Json, *, again: bool = False) -> None:
        machine, partitions = node_of(state_json.node_fields(node))
        if again and machine.machine in self._known:
            # there is one row per partition, and a node's own is the first
            machine = machine._replace(partition=None)
        self._known.add(machine.machine)
        if "gres_used" in node:
            self._used[machine.machine] = slurm_sinfo_samples.read_machine(state_json.node_sample(node))
        self._machines.append(machine)
        self._members += [(partition, machine.machine) for partition in partitions]

    def write(self, updated: int | None) -> None:
        """Write all elements to the store.

        Args:
            updated: time of the snapshot in seconds since 1970; None if unstated: then no samples are written.
        """
        put_machines(self._sink, self._machines)
        put_members(self._sink, self._members, whole="machine")
        put_members(self._sink, self._in_partition, whole="queue")
        add_queues(self._sink, {partition for partition, _ in self._members})
        if self._partitions:
            put_partitions(self._sink, self._partitions)
        self._exact.flush()
        if updated is not None:
            queue = Rows(self._sink, "queue_samples", squeue.KINDS)
            used = Rows(self._sink, "machine_samples", slurm_sinfo_samples.KINDS)
            for row in self._waiting:
                queue.add(updated * 1000, *row)
            for machine in self._used.values():
                used.add(updated * 1000, *machine)
            queue.flush()
            used.flush()
        reconcile(self._sink)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read nodes, partitions, GPUs of jobs, and, where the time is stated, samples.

    Raises:
        InputError: there is no such array.
    """
    for around, elements in documents(stream, _SHAPE):
        found = _Elements(sink)
        for element in elements:
            sink.seen()
            try:
                if element.fault is not None:
                    raise RowError(element.fault)
                found.take(element.value)
            except RowError as bad:
                sink.reject(element.line_no, str(bad), element.raw)
                continue
            sink.loaded()
        found.write(_second(around.get("last_update")))


def _instant(job: Json, key: str) -> int | None:
    """A time of a job in seconds since 1970; None if it is not set.

    Raises:
        RowError: it is not a time of this world.
    """
    found = number(job.get(key)) or None
    if found is not None and not 0 < found < LATEST_S:
        raise RowError(f"{key} is out of range: expected seconds since 1970")
    return found


def _second(updated: object) -> int | None:
    """The second since 1970 at which an answer was so; None if it does not state, or states nonsense."""
    try:
        found = number(updated)
    except RowError:
        return None
    return found if found is not None and 1e8 <= found < LATEST_S else None


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an array jobs, nodes, sinfo or partitions in an object of Slurm's that is none of sacct's."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith(b"{") or any(key in text for key in _OF_SACCT):
        return None
    whole = text.decode("utf-8", "replace")
    for array, keys in _KINDS.items():
        known = array in text and (all(key in text for key in keys) or _META.search(text))
        if known and has_array(whole, frozenset({array.decode()[1:-1]})):
            return f"JSON of Slurm with an array {array.decode()}"
    return None


FORMAT = Format(
    name="slurm-state-json",
    title="Slurm: nodes, partitions and jobs as JSON (squeue, sinfo, scontrol show node|job|partition --json)",
    fills=(
        *("machines", "queues", "queue_machines", "exact_placements", "placements", "field_sources"),
        *("queue_samples", "machine_samples"),
    ),
    file_names=("squeue.json", "sinfo.json", "scontrol_node.json", "scontrol_partition.json"),
    order=14,
    parser_version=2,
    zoned=True,
    sniff=sniff,
    load=load,
)
