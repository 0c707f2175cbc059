"""Finds the source formats: every module of ``gpuctl.ingest.formats`` brings one."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from gpuctl.ingest import formats

if TYPE_CHECKING:
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


def formats_for(columns: str | None) -> tuple[Format, ...]:
    """Return every format; where columns are named, sacct's text without a header is read in their order.

    Raises:
        InputError: a column is no field of sacct, or the job id is not among them.
    """
    if columns is None:
        return all_formats()
    from gpuctl.ingest.formats import slurm_sacct

    own = slurm_sacct.with_columns(columns)
    return tuple(own if found.name == own.name else found for found in all_formats())
