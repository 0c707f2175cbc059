"""The table of signatures that gpuctl brings, read once for all tests, and a scanner that was built of it once."""

from __future__ import annotations

from functools import cache

from gpuctl.joblogs.scan import Scanner
from gpuctl.joblogs.table import Table, load

_SITE = r"""
[[signature]]
tier = "root"
pattern = 'checkout of feature \w{1,20} failed'
"""
_FAILURES = """
[[signature]]
id = "t_syntax"
reason = "syntax_error"
tier = "root"
pattern = "SyntaxError: invalid"

[[signature]]
id = "t_gpu_oom"
reason = "gpu_out_of_memory"
tier = "root"
pattern = "CUDA out of memory"

[[signature]]
id = "t_xid"
reason = "gpu_hardware_error"
tier = "root"
pattern = "XID 79"

[[signature]]
id = "t_denied"
reason = "permission_error"
tier = "root"
pattern = "Permission denied"
"""


def site_table(one: str) -> str:
    """A table of one's own: a signature that looks for the checkout of a feature, `one` its other words, and four more.

    With gpuctl's own, these patterns are compiled once for all tests (4 s).
    """
    return f"{_SITE}{one}\n{_FAILURES}"


@cache
def table() -> Table:
    """All that gpuctl brings."""
    return load()


@cache
def scanner() -> Scanner:
    """It looks for all of them."""
    return Scanner(table())
