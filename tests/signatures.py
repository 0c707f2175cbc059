"""The table of signatures that gpuctl brings, read once for all tests, and a scanner that was built of it once."""

from __future__ import annotations

from functools import cache

from gpuctl.joblogs.scan import Scanner
from gpuctl.joblogs.table import Table, load

SITE_PATTERN = r"checkout of feature \w{1,20} failed"
"""What tests of tables of one's own look for: with gpuctl's own, it is compiled once for all of them (4 s)."""


@cache
def table() -> Table:
    """All that gpuctl brings."""
    return load()


@cache
def scanner() -> Scanner:
    """It looks for all of them."""
    return Scanner(table())
