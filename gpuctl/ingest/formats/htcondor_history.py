"""HTCondor: ClassAds of jobs (``condor_history`` and ``condor_q`` with ``-long``, ``-json``, ``-jsonl`` or ``-xml``).

The schedd's own history files and epoch ads (``condor_history -epochs``) are of the same form. A row of the ledger is
an ad. Ads of file transfers, and of jobs that run on the access point (DAGMan, the universes scheduler and local), are
counted, and make no job. A node of DAGMan follows its parents of the same file in ``job_dependencies``. Times count
from 1970.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.batch.classads import ads
from gpuctl.ingest.batch.htcondor import WANTED, is_of_a_run, job_of, parents_of
from gpuctl.ingest.batch.run_records import RunRecords
from gpuctl.ingest.core.format import Format, Sink

NAME = "htcondor-history"
_STORED = """
    SELECT job, after_job FROM job_dependencies
    WHERE cluster = $cluster AND job IN (SELECT unnest($jobs::VARCHAR[])) ORDER BY job, after_job
"""
_SLACK_S = 120.0
"""An epoch ad is written a moment after the end that the job's ad states."""
_LONG = re.compile(rb"(?m)^ClusterId = \d")
_LONG_TOO = re.compile(rb"(?m)^(?:QDate|JobStatus|EpochWriteDate) = \d")
_JSON = (b'"ClusterId"', b'"ProcId"')
_JSON_TOO = (b'"QDate"', b'"JobStatus"', b'"EpochWriteDate"')
_XML_ID = b'<a n="ClusterId">'


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs, attempts and placements.

    Raises:
        InputError: there is nothing in the file.
    """
    records = RunRecords(sink, NAME, slack_s=_SLACK_S)
    nodes: dict[tuple[str, str], str] = {}
    followers: dict[str, tuple[str, list[str]]] = {}
    for ad in ads(stream, WANTED):
        sink.seen()
        try:
            if ad.fault is not None:
                raise RowError(ad.fault)
            if not is_of_a_run(ad.values):
                sink.loaded()
                continue
            record = job_of(ad.values)
        except RowError as bad:
            sink.reject(ad.line_no, str(bad), ad.raw)
            continue
        records.add(record, ad.line_no, ad.raw)
        node = parents_of(ad.values)
        if node is not None:
            nodes[node[0], node[1]] = record.job
            if node[2]:
                followers[record.job] = (node[0], node[2])
    records.finish()
    _insert_dependencies(sink, nodes, followers)


def _insert_dependencies(
    sink: Sink, nodes: dict[tuple[str, str], str], followers: dict[str, tuple[str, list[str]]]
) -> None:
    import polars as pl

    pairs = [
        (job, nodes[dag, parent])
        for job, (dag, parents) in followers.items()
        for parent in parents
        if (dag, parent) in nodes
    ]
    if not pairs:
        return
    known = sink.query(_STORED, {"cluster": sink.cluster, "jobs": list(followers)})
    fresh = sorted(set(pairs) - set(known.iter_rows()))
    if fresh:
        rows = pl.DataFrame(fresh, schema={"job": pl.String, "after_job": pl.String}, orient="row")
        # DAGMan submits a node as soon as its parents have ended
        sink.insert("job_dependencies", rows.with_columns(think_s=pl.lit(0.0)))


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an ad of a job by its number, and its submission or state."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] in {b"[", b"{"}:
        if all(key in text for key in _JSON) and any(key in text for key in _JSON_TOO):
            return "ClassAds of HTCondor's jobs as JSON"
    elif text[:1] == b"<":
        if b"<classads>" in text and _XML_ID in text:
            return "ClassAds of HTCondor's jobs as XML"
    elif _LONG.search(text) and _LONG_TOO.search(text):
        return "ClassAds of HTCondor's jobs"
    return None


FORMAT = Format(
    name=NAME,
    title="HTCondor: jobs (condor_history or condor_q -long, -json, -jsonl, -xml)",
    fills=("jobs", "attempts", "placements", "queues", "job_dependencies"),
    file_names=("history", "condor_history.json", "condor_history.xml"),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    verified="documentation",
)
