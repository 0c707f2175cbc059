"""YARN: the output of containers as log aggregation leaves it on HDFS, one file per application and node (TFile).

The other layout that Hadoop 3 knows, the indexed file, holds its index as serialised Java objects: it is recognised and
refused, with what to run instead.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import replace
from typing import BinaryIO, cast

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.joboutput import tfile
from gpuctl.ingest.joboutput.locations import of_container
from gpuctl.ingest.joboutput.reader import Reader, default_reader, place_of
from gpuctl.ingest.read.codecs import DamageError

_IN_MEMORY = 16 << 20
_OF_A_NODE = re.compile(r"[\w.-]{1,255}_\d{1,5}", re.ASCII)
# 32 bytes that name the application (36 in the first releases, and a line break), then a zlib stream
_INDEXED = re.compile(rb"(?:.{32}|[0-9a-f-]{36}\n)\x78[\x01\x5e\x9c\xda]", re.DOTALL)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read the logs of all containers into ``job_outputs``, ``job_logs`` and ``progress``.

    Raises:
        InputError: it is compressed in a way, or laid out in one, that cannot be read.
    """
    read(default_reader(), stream, sink)


def read(reader: Reader, stream: BinaryIO, sink: Sink) -> None:
    """Read the logs with the signatures of a reader."""
    from gpuctl.ingest.joboutput.rows import LogRows, lines_of

    place = place_of(stream)
    rows = LogRows(sink, reader.scanner, place.inside)
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        # its index is at its end, and it may lie in an archive that is read from front to back
        shutil.copyfileobj(stream, spool)
        file = cast("BinaryIO", spool)
        file.seek(0)
        if file.read(len(tfile.MAGIC)) != tfile.MAGIC:
            raise InputError("aggregated logs in YARN's indexed format", path=place.path, hint=tfile.HINT)
        try:
            for section in tfile.sections(file, place.path):
                log = of_container(section.container, section.name)
                if log is not None:
                    rows.read(section.stream, log)
                    continue
                lines = lines_of(section.stream)
                sink.seen(lines)
                sink.loaded(lines)
        except DamageError as damage:
            sink.seen()
            sink.reject(rows.lines + 1, f"damaged aggregated logs: {damage}", b"")
    rows.flush()


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the first bytes of a TFile; the indexed file by the name of its node, too."""
    if head.startswith(tfile.MAGIC):
        return "first bytes of a TFile"
    indexed = _OF_A_NODE.fullmatch(name) is not None and _INDEXED.match(head) is not None
    return "name of a node, first bytes of an indexed file" if indexed else None


def with_reader(reader: Reader) -> Format:
    """Return the format with the signatures of a reader."""
    return replace(FORMAT, load=lambda stream, sink: read(reader, stream, sink), version=reader.version)


FORMAT = Format(
    name="yarn-aggregated-logs",
    title="YARN: output of containers, as log aggregation keeps it on HDFS (TFile; none, gz, zstd)",
    fills=("job_outputs", "job_logs", "progress"),
    file_names=("logs/application_1528800000000_0001/node01_45454",),
    order=90,
    sniff=sniff,
    load=load,
    many=True,
    version=default_reader().version,
)
