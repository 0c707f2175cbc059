"""Checks that a file holds data of the format that the user named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.storable_text import plural
from gpuctl.ingest.pipeline.detect import HEAD, LOG_FORMAT, detect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.ingest.core.format import Format
    from gpuctl.ingest.core.sink import StoreSink
    from gpuctl.ingest.pipeline.detect import Finding
    from gpuctl.ingest.read.files import Opener

_START = 60
"""Bytes of a file's first line that an error shows."""


def refuse_empty(finding: Finding, sink: StoreSink, opener: Opener, formats: Sequence[Format]) -> None:
    """Reject a file that gave no rows in the format that the user named.

    A file that is recognised as that format may be empty: a quiet day's log, an empty list.

    Args:
        finding: the file and the format.
        sink: the sink with its counts.
        opener: opens the file once more.
        formats: other formats that the file may have.

    Raises:
        InputError: no row could be loaded, or no counted row had any content.
    """
    if not finding.chosen or (sink.rows_loaded and sink.wrote) or sink.rows_already_stored:
        return
    if not sink.rows_loaded:
        line, why = sink.first_reject or (None, "no row in it")
        raise not_read_as(finding, InputError(why, line=line), opener, formats)
    with opener.open(finding.candidate) as stream:
        known = finding.format.sniff(finding.candidate.name, stream.peek(HEAD))
    if not known:
        nothing = InputError(f"none of its {plural(sink.rows_loaded, 'row')} has anything for it")
        raise not_read_as(finding, nothing, opener, formats)


def not_read_as(finding: Finding, error: InputError, opener: Opener, formats: Sequence[Format]) -> InputError:
    """Return the error for a file that is not in the format that the user named, with its actual content."""
    found, fmt = finding.candidate, finding.format
    with opener.open(found) as stream:
        head = stream.read(HEAD)
        looks, why, _ = detect(found.name, head, formats, stream.place)
    other = f"{looks.name}: {why}" if looks is not None and looks.name != fmt.name else ""
    start = head.split(b"\n", 1)[0][:_START].decode("utf-8", "backslashreplace").strip()
    return InputError(
        f"not read as {fmt.name} ({fmt.title}): {error.message}; the file begins with {start!r}",
        line=error.line,
        hint=f"leave {LOG_FORMAT} out: it looks like {other}" if other else error.hint or "gpuctl formats lists them",
    )
