"""Whether a file that the user says is of a format has anything of that format in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.text import plural
from gpuctl.ingest.pipeline.detect import HEAD

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.ingest.core.sink import StoreSink
    from gpuctl.ingest.pipeline.detect import Finding
    from gpuctl.ingest.read.files import Opener


def refuse_empty(
    finding: Finding, sink: StoreSink, opener: Opener, explain: Callable[[Finding, InputError], InputError]
) -> None:
    """Refuse a file that was read as the user said and gave nothing.

    A file that looks like one of that format may have nothing to tell: a quiet day's log, an empty list.

    Args:
        finding: the file and the format.
        sink: what was counted and written.
        opener: opens the file once more.
        explain: says what the file looks like.

    Raises:
        InputError: no row could be loaded, or none that was counted told anything.
    """
    if not finding.chosen or (sink.rows_loaded and sink.wrote):
        return
    if not sink.rows_loaded:
        line, why = sink.first_reject or (None, "no row in it")
        raise explain(finding, InputError(why, line=line))
    with opener.open(finding.candidate) as stream:
        known = finding.format.sniff(finding.candidate.name, stream.peek(HEAD))
    if not known:
        raise explain(finding, InputError(f"none of its {plural(sink.rows_loaded, 'row')} has anything for it"))
