"""What the formats of job output share during one ingest: the patterns, the signatures, one compiled scanner."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.ingest.core.format import Place
from gpuctl.ingest.joboutput.locations import by_layout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpuctl.ingest.joboutput.patterns import Log, Pattern
    from gpuctl.joblogs.scan import Scanner
    from gpuctl.joblogs.table import Table


@dataclass
class Reader:
    """One per process is enough: compiling the signatures takes a second or more.

    Attributes:
        patterns: the user's.
        signatures: files of signatures of the user.
        found: patterns that fitted a file.
    """

    patterns: tuple[Pattern, ...] = ()
    signatures: tuple[Path, ...] = ()
    found: set[str] = field(default_factory=set)

    @cached_property
    def table(self) -> Table:
        """The signatures to look for.

        Raises:
            InputError: a file of the user's is not such a table.
        """
        from gpuctl.joblogs.table import load

        return load(self.signatures)

    @cached_property
    def scanner(self) -> Scanner:
        """Looks through logs.

        Raises:
            InputError: a signature cannot be compiled.
        """
        from gpuctl.joblogs.scan import Scanner

        return Scanner(self.table)

    def version(self) -> str:
        """Of the signatures: logs that were read with others are read again."""
        return self.table.version

    def log_of(self, place: Place) -> tuple[Log, str] | None:
        """The owner of a log file, and the evidence for it; None if its place does not show it."""
        for pattern in self.patterns:
            log = pattern.match(place.inside)
            if log is not None:
                self.found.add(pattern.text)
                return log, f"fits {pattern.text}"
        return by_layout(place)

    def unused(self) -> Iterator[str]:
        """The patterns that fitted no file."""
        yield from (pattern.text for pattern in self.patterns if pattern.text not in self.found)


@cache
def default_reader() -> Reader:
    """The reader without patterns and signatures of the user."""
    return Reader()


def place_of(stream: BinaryIO) -> Place:
    """Where the file lies that a stream reads; of other streams their name is all that is known."""
    place = getattr(stream, "place", None)
    if isinstance(place, Place):
        return place
    name = str(getattr(stream, "name", ""))
    return Place(name, name)
