"""Finds the source formats: every module of ``gpuctl.ingest.formats`` brings one."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError
from gpuctl.ingest import formats

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpuctl.ingest.base import Format


@cache
def all_formats() -> tuple[Format, ...]:
    """Import and return every format, in the order they are loaded in (`Format.order`, then name).

    A module whose name begins with an underscore is none. A module that cannot be imported, or has no
    ``FORMAT``, is a fault of this program and is raised as such, never passed over.
    """
    names = [m.name for m in pkgutil.iter_modules(formats.__path__) if not m.name.startswith("_")]
    found: list[Format] = [importlib.import_module(f"{formats.__name__}.{name}").FORMAT for name in names]
    if len({f.name for f in found}) < len(found):
        raise ValueError(f"two formats of one name among {sorted(f.name for f in found)}")
    return tuple(sorted(found, key=lambda f: (f.order, f.name)))


def named(name: str, formats: Sequence[Format]) -> Format:
    """Return the format of a name.

    Raises:
        UsageError: there is none.
    """
    from difflib import get_close_matches

    known = {fmt.name: fmt for fmt in formats}
    if name not in known:
        near = get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "gpuctl formats lists them"
        raise UsageError(f"--log-format {name!r}: there is no such format", hint=hint)
    return known[name]


def formats_for(
    columns: str | None,
    *,
    cumulative: bool = False,
    job_logs: Sequence[str] = (),
    signatures: Sequence[Path] = (),
) -> tuple[Format, ...]:
    """Return every format, some of them as the user's options have it.

    Args:
        columns: the columns of sacct's text without a header, in their order.
        cumulative: the bytes of traffic CSVs are counters.
        job_logs: patterns of the paths of jobs' own output (`gpuctl.ingest.joboutput.patterns`).
        signatures: the user's own tables of what to look for in it.

    Raises:
        InputError: a column is no field of sacct, or the job id is not among them; a table cannot be read.
        UsageError: a pattern names no job.
    """
    from gpuctl.ingest.formats import slurm_sacct, traffic_csv

    own: dict[str, Format] = {}
    if columns is not None:
        own[slurm_sacct.FORMAT.name] = slurm_sacct.with_columns(columns)
    if cumulative:
        own[traffic_csv.FORMAT.name] = traffic_csv.with_counters()
    if job_logs or signatures:
        own |= {found.name: found for found in _of_output(job_logs, signatures)}
    return tuple(own.get(found.name, found) for found in all_formats())


def _of_output(job_logs: Sequence[str], signatures: Sequence[Path]) -> tuple[Format, ...]:
    from gpuctl.ingest.formats import job_output, yarn_aggregated_logs, yarn_container_logs
    from gpuctl.ingest.joboutput.patterns import Pattern
    from gpuctl.ingest.joboutput.reader import Reader

    reader = Reader(tuple(Pattern(text) for text in job_logs), tuple(signatures))
    if signatures:
        # what is wrong with them is said before anything is read
        _ = reader.scanner
    return tuple(module.with_reader(reader) for module in (job_output, yarn_container_logs, yarn_aggregated_logs))
