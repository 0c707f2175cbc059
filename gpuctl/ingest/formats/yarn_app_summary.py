"""ApplicationSummary lines of a YARN ResourceManager, in a file of their own or bare.

``rm-appsummary.log`` holds nothing else; single lines copied from a ResourceManager's log, with their date or from
``appId=`` on, are read as well. A row of the ledger is one line that is not blank.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.yarn.facts import Facts
from gpuctl.ingest.yarn.merge import refresh
from gpuctl.ingest.yarn.sniffing import daemon_of
from gpuctl.ingest.yarn.summary import read_summary, take_summary

_BARE = re.compile(rb"\s*appId=application_\d+_\d+,")
_MESSAGE = re.compile(r"(?:^|: |- )(?=appId=application_)")


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read summaries into facts, and make jobs of all facts so far."""
    facts = Facts(sink)
    for line in numbered_lines(stream):
        if not line.data.strip():
            continue
        sink.seen()
        try:
            text = line.text()
            message = _MESSAGE.search(text)
            if message is None:
                raise RowError("no ApplicationSummary (expected appId=application_...)")
            take_summary(facts, read_summary(text[message.end() :]))
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        sink.loaded()
        if facts.many:
            facts.flush()
    facts.flush()


def sniff(name: str, head: bytes) -> str | None:
    """Recognise ApplicationSummary records if the first lines are nothing else."""
    text = head.removeprefix(b"\xef\xbb\xbf")
    if daemon_of(text) == "summary" or _BARE.match(text):
        return "ApplicationSummary lines"
    return None


FORMAT = Format(
    name="yarn-app-summary",
    title="YARN: ApplicationSummary lines of a ResourceManager",
    fills=("jobs", "attempts", "queues"),
    file_names=("rm-appsummary.log",),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    alone=True,
    settle=refresh,
)
