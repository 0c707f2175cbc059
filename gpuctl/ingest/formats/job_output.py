"""What jobs print, in files that are theirs by where they lie: a pattern of the user's, Slurm's names, YARN's folders.

A row of the ledger is a line; each is looked at, and those that a signature finds or that show training progress are
stored. Nothing in the bytes themselves states that a file is such a log, so that `sniff` never does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import Format, Place, Sink
from gpuctl.ingest.joboutput import containertext, tfile
from gpuctl.ingest.joboutput.owners import conclude
from gpuctl.ingest.joboutput.reader import Reader, default_reader, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_NO_TEXT = bytes(range(7)) + bytes(range(0x0E, 0x1B)) + bytes(range(0x1C, 0x20))
_BINARY = 0.05
"""Of the first 64 KiB of what is not text, at least this share are bytes that no terminal shows."""


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read one log into ``job_outputs``, ``job_logs`` and ``progress``.

    Raises:
        InputError: where the file lies does not state whose log it is.
    """
    read(default_reader(), stream, sink)


def read(reader: Reader, stream: BinaryIO, sink: Sink) -> None:
    """Read one log with the patterns and signatures of a reader."""
    from gpuctl.ingest.joboutput.rows import LogRows

    place = place_of(stream)
    found = reader.log_of(place)
    if found is None:
        raise InputError("its path does not show which job wrote it", path=place.path, hint="name a --job-logs PATTERN")
    rows = LogRows(sink, reader.scanner, place.inside)
    rows.read(stream, found[0])
    rows.flush()


def sniff(name: str, head: bytes) -> str | None:
    """Recognise nothing."""
    del name, head
    return None


def claims(reader: Reader, place: Place, head: bytes) -> str | None:
    """Recognise a log by its place, unless it is binary, or is text of ``yarn logs``, which names its jobs itself."""
    found = reader.log_of(place)
    if found is None or _binary(head):
        return None
    by_pattern = found[1].startswith("fits")
    if by_pattern and (containertext.recognised_by(head) or head.startswith(tfile.MAGIC)):
        return None
    return found[1]


def _binary(head: bytes) -> bool:
    # a log that was cut off at its front while its program held it open begins with many NULs
    text = head.lstrip(b"\0")
    return len(text) - len(text.translate(None, _NO_TEXT)) > _BINARY * len(text)


def with_reader(reader: Reader) -> Format:
    """Return the format with the patterns and signatures of a reader."""

    def claim(place: Place, head: bytes) -> str | None:
        return claims(reader, place, head)

    def whose(place: Place) -> tuple[str, int | None, str] | None:
        found = reader.log_of(place)
        return None if found is None else found[0][:3]

    def end(sink: Sink | None) -> Iterable[str]:
        for pattern in reader.unused():
            yield f"--job-logs {pattern} fits no file: it has to be the whole path below the directory given"
        if sink is not None:
            yield from conclude(sink)

    return replace(
        _BASE,
        load=lambda stream, sink: read(reader, stream, sink),
        claims=claim,
        whose=whose,
        version=reader.version,
        conclude=end,
    )


_BASE = Format(
    name="job-output",
    title="What jobs print: --job-logs PATTERN, slurm-JOB.out, YARN's container folders",
    fills=("job_outputs", "job_logs", "progress"),
    file_names=("slurm-4711.out", "slurm-4711_3.out", "application_*/container_*/stderr", "{job}/{attempt}/stderr"),
    order=90,
    sniff=sniff,
    load=load,
    many=True,
)
FORMAT = with_reader(default_reader())
