"""YARN: the output of containers as ``yarn logs -applicationId`` prints it, all logs of an application in one text."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.joboutput import containertext
from gpuctl.ingest.joboutput.locations import of_container
from gpuctl.ingest.joboutput.reader import Reader, default_reader, place_of


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read the logs of all containers into ``job_outputs``, ``job_logs`` and ``progress``."""
    read(default_reader(), stream, sink)


def read(reader: Reader, stream: BinaryIO, sink: Sink) -> None:
    """Read the logs with the signatures of a reader; lines between the logs are counted as loaded."""
    from gpuctl.ingest.joboutput.rows import LogRows, lines_of

    rows = LogRows(sink, reader.scanner, place_of(stream).inside)
    text = containertext.ContainerText(stream)
    for section in text.sections():
        log = of_container(section.container, section.name)
        if log is None:
            text.lines += lines_of(section.stream)
        else:
            rows.read(section.stream, log)
    rows.flush()
    sink.seen(text.lines)
    sink.loaded(text.lines)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the lines that begin the logs of a container."""
    del name
    return containertext.recognised_by(head)


def with_reader(reader: Reader) -> Format:
    """Return the format with the signatures of a reader."""
    return replace(FORMAT, load=lambda stream, sink: read(reader, stream, sink), version=reader.version)


FORMAT = Format(
    name="yarn-container-logs",
    title="YARN: output of containers, as yarn logs -applicationId prints it",
    fills=("job_outputs", "job_logs", "progress"),
    file_names=("application_1528800000000_0001.log",),
    order=90,
    sniff=sniff,
    load=load,
    many=True,
    version=default_reader().version,
)
