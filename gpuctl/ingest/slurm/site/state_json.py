"""One job, node, row of sinfo or partition of ``--json`` as the fields that the commands print of it as text.

From release to release numbers became ``{set, infinite, number}``, a state became a list of words, texts became objects
with parts. Facts: Slurm 22.05.8 as recorded, and the data_parser of v0.0.39 to v0.0.45.
"""

from __future__ import annotations

from typing import Any

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.slurm.json_fields import number
from gpuctl.slurm.conf import hosts
from gpuctl.slurm.gres import Gpus, read_gres

Json = dict[str, Any]
_SHOWN_STATES = ("CONFIGURING", "COMPLETING", "REVOKED")


def part(value: Json, key: str) -> Json:
    """Return the object under a key, empty if there is none.

    Raises:
        RowError: it is something else.
    """
    found = value.get(key)
    if found is not None and not isinstance(found, dict):
        raise RowError(f"{key} is not an object")
    return found or {}


def text(value: Json, key: str, inside: str = "") -> str:
    """Return the text under a key, or, if an object is there, under a key of that.

    Raises:
        RowError: it is something else.
    """
    found = value.get(key)
    if inside and isinstance(found, dict):
        found = found.get(inside)
    if found is not None and not isinstance(found, str):
        raise RowError(f"{key} is not text")
    return found or ""


def words(value: Json, key: str) -> list[str]:
    """Return the words under a key: a list, or one text with commas.

    Raises:
        RowError: it is something else.
    """
    found = value.get(key)
    if isinstance(found, str):
        found = found.split(",")
    if not isinstance(found, list | None) or not all(isinstance(word, str) for word in found or []):
        raise RowError(f"{key} is not a list of words")
    return [word for word in found or [] if word]


def digits(value: object) -> str:
    """Write a number, empty if it is not set.

    Raises:
        RowError: it is not a whole number.
    """
    found = number(value)
    return "" if found is None else str(found)


def node_fields(node: Json) -> dict[str, str]:
    """The fields of ``scontrol show node`` that are read of it."""
    names = {"NodeName": text(node, "name"), "CPUTot": digits(node.get("cpus"))}
    names |= {"RealMemory": digits(node.get("real_memory")), "Partitions": ",".join(words(node, "partitions"))}
    if "gres" in node:
        return {**names, "Gres": text(node, "gres")}
    return {**names, "CfgTRES": text(node, "tres")} if "tres" in node else names


def node_sample(node: Json) -> dict[str, str]:
    """The columns of a line of sinfo's samples."""
    states = [*words(node, "state"), *words(node, "state_flags")]
    return {"node": text(node, "name"), "state": "+".join(states).lower(), "gresused": text(node, "gres_used")}


def sinfo_nodes(row: Json) -> list[Json]:
    """The nodes that a row of sinfo is about, each as `node_fields` takes it.

    A row of several nodes has the GPUs of one of them, which may not be those of the others: they stay unknown.
    """
    listed = [name for entry in words(part(row, "nodes"), "nodes") for name in hosts(entry)]
    node: Json = {"partitions": [text(row, "partition", "name")], "state": part(row, "node").get("state")}
    for key, name in (("cpus", "cpus"), ("memory", "real_memory")):
        sizes = part(row, key)
        if "maximum" in sizes and sizes.get("minimum") == sizes["maximum"]:
            node[name] = sizes["maximum"]
    if len(listed) == 1:
        gres = part(row, "gres")
        node |= {"gres": text(gres, "total"), "gres_used": text(gres, "used")}
    return [{**node, "name": name} for name in listed]


def partition_fields(partition: Json) -> dict[str, str]:
    """The fields of ``scontrol show partition`` that are read of it."""
    return {
        "PartitionName": text(partition, "name"),
        "Nodes": text(partition, "nodes", "configured"),
        "QoS": text(partition, "qos", "assigned"),
    }


def job_id(job: Json) -> str:
    """The number of a job.

    Raises:
        RowError: it has none.
    """
    found = number(job.get("job_id"))
    if found is None or found < 0:
        raise RowError("no job_id")
    return str(found)


def job_gpus(job: Json) -> dict[str, Gpus]:
    """GPUs by node, of a job that has some; ``gres_detail`` has one text per node, in the order of the node list.

    Raises:
        RowError: the texts and the nodes do not fit together.
    """
    listed = job.get("gres_detail") or []
    if not isinstance(listed, list) or not all(isinstance(entry, str) for entry in listed):
        raise RowError("gres_detail is not a list of texts")
    nodes = hosts(text(job, "nodes"))
    if not listed:
        return {}
    if len(listed) != len(nodes):
        raise RowError("gres_detail has not one text for each node")
    try:
        found = {machine: read_gres(entry) for machine, entry in zip(nodes, listed, strict=True)}
    except ValueError as bad:
        raise RowError(str(bad)) from None
    return found if any(gpus.gpus for gpus in found.values()) else {}


def job_fields(job: Json) -> dict[str, str]:
    """The fields of ``scontrol show job`` from which a job's GPUs follow."""
    names = {
        **{"TresPerJob": "tres_per_job", "TresPerNode": "tres_per_node", "TresPerTask": "tres_per_task"},
        **{"AllocTRES": "tres_alloc_str", "ReqTRES": "tres_req_str"},
    }
    numbers = {"NumNodes": "node_count", "NumTasks": "tasks"}
    # a job that runs and of whose nodes nothing is listed holds no GPU
    none = job.get("gres_detail") == [] and "RUNNING" in words(job, "job_state")
    return {
        **({"JOB_GRES": "(null)"} if none else {}),
        **{name: text(job, key) for name, key in names.items()},
        **{name: digits(job.get(key)) for name, key in numbers.items()},
    }


def queue_cells(job: Json) -> dict[str, str]:
    """The columns of a line of squeue's samples."""
    states = words(job, "job_state")
    array, task = number(job.get("array_job_id")), number(job.get("array_task_id"))
    tasks = text(job, "array_task_string")
    names = f"{array}_{task}" if array and task is not None else f"{array}_[{tasks}]" if array and tasks else ""
    shown = next((state for state in _SHOWN_STATES if state in states), states[0] if states else "")
    return {"jobid": job_id(job), "array": names, "state": shown, "reason": text(job, "state_reason")}
