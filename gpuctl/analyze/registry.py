"""The registry of results: which tables an analysis has, in the order they are shown.

A new analysis is one file in `queries/`, found by itself; its header says where it stands. Standard library only, so
that the command line can offer the names without loading anything heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError
from gpuctl.core.spelling import meant
from gpuctl.queries.catalogue import SECTIONS, built_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuctl.queries.catalogue import Query

REFERENCES = ("atc19",)
"""Published values that ``--reference NAME`` prints beside ours."""


def known() -> dict[str, Query]:
    """Every analysis there is, by name, in the order in which they are shown."""
    return built_in()


def tables(reference: str = "") -> tuple[str, ...]:
    """The names of the tables that every analysis has, or of those that print a reference's values, in their order."""
    return tuple(name for name, query in known().items() if query.reference == reference)


def check_names(*, sections: Iterable[str] = (), tables: Iterable[str] = (), reference: str | None = None) -> None:
    """Refuse names that no section, table or reference has, before any work is done.

    Raises:
        UsageError: names the nearest ones that there are.
    """
    for kind, names, there in (
        ("section", sections, tuple(key for key, _ in SECTIONS)),
        ("table", tables, None),
        ("reference", () if reference is None else (reference,), REFERENCES),
    ):
        for name in names:
            allowed = tuple(known()) if there is None else there
            if name not in allowed:
                raise UsageError(f"there is no {kind} {name!r}", hint=meant(name, allowed))
