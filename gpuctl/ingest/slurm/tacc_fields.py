"""One line of the job logs that TACC published with Mirage, as the fields of ``sacct -P``.

The columns are ``JobID JobName UID Start Submit End Priority TimelimitRaw ExitCode NNodes``, parted by tabs. A name
may hold tabs, for the log was made from a table of blanks, so a line is read from its right end.
"""

from __future__ import annotations

import re

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.slurm.json_fields import clock

COLUMNS = (
    *("JobIDRaw", "JobID", "JobName", "User", "Start", "Submit", "End"),
    *("Priority", "Timelimit", "ExitCode", "NNodes"),
)
"""What `fields` fills, by the names of ``sacct -e``."""

NAMES = ("JobID", "JobName", "UID", "Start", "Submit", "End", "Priority", "TimelimitR", "ExitCode", "NNodes")
"""The words of the header, as wide as sacct printed them."""

_TIME = r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown|None)"
_LINE = re.compile(
    rf"\s*(\d{{1,19}})\t(.*)\t(\S{{1,64}})\t({_TIME})\t({_TIME})\t({_TIME})\t(\d{{1,12}})\t"
    r"(\d{1,9}|UNLIMITED|Partition_Limit)?\t(\d{1,3}:\d{1,3})\t(\d{1,9})\s*",
    re.ASCII,
)


def fields(text: str) -> dict[str, str]:
    """Return the `COLUMNS` of one line.

    Raises:
        RowError: it is not what such a line looks like.
    """
    match = _LINE.fullmatch(text)
    if match is None:
        raise RowError(f"not the ten columns {' '.join(NAMES)}")
    job, name, user, start, submit, end, priority, limit, code, nodes = match.groups(default="")
    return {
        "JobIDRaw": job,
        "JobID": job,
        "JobName": name.replace("\t", " "),
        "User": user,
        "Start": start,
        "Submit": submit,
        "End": end,
        "Priority": priority,
        "Timelimit": clock(60 * int(limit)) if limit.isdigit() else limit,
        "ExitCode": code,
        "NNodes": nodes,
    }
