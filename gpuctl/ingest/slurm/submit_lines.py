"""Options of the command that submitted a job (sacct's SubmitLine): what it waits for, which nodes it excludes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_OPTION = re.compile(
    r"\s(?:--(?P<long>dependency|exclude|array)[= ]\s{0,4}|-(?P<short>[dxa])[= ]?\s{0,4})(?P<value>[^\s'\"]{1,2000})"
)
_SHORT = {"d": "dependency", "x": "exclude", "a": "array"}
_ANY = r"\s(?:--(?:dependency|exclude|array)\b|-[dxa])"


def submit_options(records: pl.DataFrame) -> list[pl.DataFrame]:
    """Read the rows of ``submit_options`` out of records with ``job`` and ``submit_line``, once for each job.

    What follows the first word without a dash that ends like a script is the script's own.

    Returns:
        One frame, or none if no record has such options.
    """
    import polars as pl

    if "submit_line" not in records.columns:
        return []
    some = records.filter(pl.col("submit_line").str.contains(_ANY)).unique("job", keep="first", maintain_order=True)
    rows = [
        (job, _SHORT.get(found["short"] or "", found["long"]), found["value"])
        for job, line in some.select("job", "submit_line").iter_rows()
        for found in _OPTION.finditer(re.split(r"\s\S{1,400}\.(?:sh|sbatch|slurm|py)(?:\s|$)", line)[0])
    ]
    return [pl.DataFrame(rows, schema=["job", "option", "value"], orient="row")] if rows else []
