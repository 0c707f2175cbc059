"""Limits on GPUs as JSON: ``sacctmgr --json show assoc`` and ``show qos``, and slurmrestd's ``/slurmdb/…`` of the same.

A row of the ledger is an association or a QOS. What is taken is what `slurm-limits` takes of the texts: the limits on
``gres/gpu`` and ``gres/gpu:TYPE`` of groups, jobs, nodes, users and accounts. Limits on GPU minutes, wall time and
numbers of jobs are not modelled: elements with nothing else are counted as loaded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.json_walk import Shape, documents, has_array
from gpuctl.ingest.slurm.json_fields import number
from gpuctl.ingest.slurm.site.limits import Holder, LimitRows
from gpuctl.ingest.slurm.site.machines import put_quotas
from gpuctl.slurm.dump import checked

if TYPE_CHECKING:
    from collections.abc import Mapping

_ARRAYS = frozenset({"associations", "qos"})
_KEYS = {"associations": (b'"parent_account"', b'"shares_raw"'), "qos": (b'"limits"', b'"usage_factor"')}
"""The array's name, and what its elements have."""
_SHAPE = Shape(
    _ARRAYS,
    frozenset({"parent_account", "usage_factor"}),
    re.compile(r'\{\s{0,40}"(?:accounting|account|description)"\s{0,9}:'),
    "an object with an array associations or qos",
    "write it again with: sacctmgr --json show assoc > assoc.json; sacctmgr --json show qos > qos.json",
)
_OF_ASSOC = {"grptres": ("total",), "maxtres": ("per", "job"), "maxtrespernode": ("per", "node")}
_OF_QOS = {**_OF_ASSOC, "maxtrespu": ("per", "user"), "maxtrespa": ("per", "account")}
"""Names of sacctmgr's columns, and where the same limit is below ``max``/``tres``."""


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``gpu_limits``, and set the quotas of partitions that have a QOS of their own.

    Raises:
        InputError: there is no such array.
    """
    rows = LimitRows(sink)
    for _, elements in documents(stream, _SHAPE):
        for element in elements:
            sink.seen()
            try:
                if not isinstance(element.value, dict):
                    raise RowError(element.fault or "not an object")
                _take(rows, element.value)
            except RowError as bad:
                sink.reject(element.line_no, str(bad), element.raw)
                continue
            sink.loaded()
    rows.flush()
    put_quotas(sink)


def _take(rows: LimitRows, found: Mapping[str, Any]) -> None:
    if "limits" in found:
        name = _name(found, "name")
        if name is None:
            raise RowError("a QOS without a name")
        limits = found["limits"]
        rows.take(Holder("qos", qos=name), _cells(limits if isinstance(limits, dict) else {}, _OF_QOS))
        return
    account, user = _name(found, "account"), _name(found, "user")
    if account is None:
        raise RowError("neither an association's account nor a QOS's limits")
    # the root account's own row is the cluster's
    scope = "user" if user else "cluster" if account == "root" else "account"
    holder = Holder(scope, account, _name(found, "parent_account"), user, _name(found, "partition"))
    rows.take(holder, _cells(found, _OF_ASSOC))


def _cells(found: Mapping[str, Any], places: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Limits in sacctmgr's columns and words: ``gres/gpu=8,gres/gpu:a100=4``."""
    cells = {}
    for column, path in places.items():
        at: Any = found
        for key in ("max", "tres", *path):
            at = at.get(key) if isinstance(at, dict) else None
        if isinstance(at, list):
            cells[column] = ",".join(_limit(one) for one in at if isinstance(one, dict) and one.get("type") == "gres")
    return cells


def _limit(found: Mapping[str, Any]) -> str:
    count = number(found.get("count"))
    # no number: the limit is lifted
    return f"gres/{found.get('name')}={-1 if count is None else count}"


def _name(found: Mapping[str, Any], key: str) -> str | None:
    text = found.get(key)
    return checked(text) if isinstance(text, str) else None


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an array associations or qos, and what its elements have."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith(b"{") or b'"job_id"' in text:
        return None
    there = [array for array, keys in _KEYS.items() if all(key in text for key in keys)]
    if there and has_array(text.decode("utf-8", "replace"), frozenset(there)):
        return f"JSON of Slurm's accounting with an array {there[0]}"
    return None


FORMAT = Format(
    name="slurm-limits-json",
    title="Slurm: limits on GPUs as JSON (sacctmgr --json show assoc|qos, slurmrestd's associations and qos)",
    fills=("gpu_limits", "queues", "settings"),
    file_names=("assoc.json", "qos.json"),
    order=20,
    sniff=sniff,
    load=load,
    verified="documentation",
)
