"""The registry of results: the tables of an analysis, in display order, and the origin of each.

A new built-in analysis is one file in `queries/`, found automatically. Packages add theirs by the group of entry points
``gpuctl.analyses``: the value ``MODULE`` selects every ``.sql`` file next to that module, ``MODULE:NAME`` only
``NAME.sql``. Readers name a file of their own. Third-party analyses run like a reader's query: one SELECT, which reads
only the store.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.core import plugins
from gpuctl.core.errors import GpuctlError, InputError, UsageError
from gpuctl.core.suggestions import meant
from gpuctl.queries.catalogue import Query, built_in, in_order, read
from gpuctl.queries.sections import REFERENCES, SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GROUP = "gpuctl.analyses"
SITE_NOTES = ("quota_note", "rack_note", "borrow_note")
SAYS = ("cluster", "telemetry_note", "idle_below", "charge_by", "period_zone", *SITE_NOTES)
"""Placeholders of populations in addition to the numbers of ``queries/base/population.sql``."""

_ENDING = ".sql"
_LARGEST = 1_000_000
_HINT = "docs/how-to/add-an-analysis.md describes what a SQL file must contain"
_log = logging.getLogger(__name__)


@cache
def all_analyses() -> dict[str, Query]:
    """Return all analyses, including those of installed packages, by name, in display order.

    An unusable analysis of a package causes one warning, and the others are returned.
    """
    found = dict(built_in())
    for plugin in installed():
        try:
            for query in of_package(plugin):
                rival = found.setdefault(query.name, query)
                if rival is not query:
                    raise UsageError(_twice(query.name, rival.origin, query.origin))
        except GpuctlError as error:
            _log.warning("%s", error.message)
    return {query.name: query for query in in_order(found.values())}


def _twice(name: str, *origins: str) -> str:
    return f"analysis {name!r} exists more than once: {'; '.join(origins)}"


def installed() -> tuple[plugins.Plugin, ...]:
    """Return the entry points of packages that add analyses, without reading them."""
    return plugins.installed("analysis", GROUP)


def of_package(plugin: plugins.Plugin) -> list[Query]:
    """Return the analyses of an entry point.

    Raises:
        InputError: its module cannot be imported, has no such files, or a header is invalid.
    """
    texts = plugin.files(_ENDING)
    if not texts:
        raise plugin.broken(f"there is no file of SQL where {plugin.point.value} says")
    found = []
    for name, text in texts.items():
        try:
            found.append(_checked(name, text, plugin.origin))
        except ValueError as error:
            raise plugin.broken(f"{name}{_ENDING}: {error}") from None
    return found


def of_file(path: Path) -> Query:
    """Return the analysis of a file that the user has named.

    Raises:
        UsageError: there is no such file, or an analysis has its name.
        InputError: it cannot be read, or its header is invalid.
    """
    from gpuctl.core.file_io import read_whole
    from gpuctl.core.path_checks import is_file

    if not is_file(path):
        raise UsageError(f"{str(path)[:200]}: no such file", hint="--table FILE.sql")
    try:
        found = _checked(path.stem, read_whole(path, most=_LARGEST).decode("utf-8"), f"file {path}")
    except ValueError as error:
        raise InputError(str(error), path=str(path), hint=_HINT) from None
    if found.name in all_analyses():
        conflict = _twice(found.name, all_analyses()[found.name].origin, found.origin)
        raise UsageError(conflict, hint="rename the file")
    return found


def with_files(names: Iterable[str]) -> tuple[list[str], tuple[Query, ...]]:
    """Return names of tables, with SQL files replaced by the names of their analyses; and these analyses.

    Raises:
        UsageError, InputError: as for `of_file`; or two files have the same name.
    """
    files = {name: of_file(Path(name)) for name in names if name.endswith(_ENDING)}
    own = tuple(files.values())
    for k, query in enumerate(own):
        if query.name in {other.name for other in own[:k]}:
            raise UsageError(_twice(query.name, *(q.origin for q in own if q.name == query.name)))
    return [files[name].name if name in files else name for name in names], own


def named(name: str) -> Query:
    """Return the analysis of that name, or of the file ``FILE.sql``.

    Raises:
        UsageError: there is no such analysis.
        InputError: the file, or the package's analysis, cannot be used.
    """
    if name.endswith(_ENDING):
        return of_file(Path(name))
    check_names(tables=[name])
    return all_analyses()[name]


def _checked(name: str, text: str, origin: str) -> Query:
    """Read a third-party analysis, and check that everything that it refers to exists.

    Raises:
        ValueError: something does not exist.
    """
    from gpuctl.analyze.shared_sql import numbers
    from gpuctl.core.notes import fields

    found = replace(read(name, text), origin=origin)
    strange = fields(found.population) - {*SAYS, *numbers("population")}
    if strange:
        raise ValueError(f"population: the number does not exist: {{{min(strange)}}}")
    if found.needs and found.needs.replace(" ", "_") not in numbers("counts"):
        raise ValueError(f"needs: {found.needs!r} is not a kind of data that gpuctl knows")
    declared = {"cluster", *(setting.name for setting in found.settings)}
    if found.parameters - declared:
        raise ValueError(
            f"there is no parameter ${min(found.parameters - declared)}; there is $cluster, and what the header "
            "declares: '-- parameter: name | default | definition'"
        )
    if found.reference:
        raise ValueError("reference: only gpuctl's own analyses print published values")
    return found


def tables(reference: str = "") -> tuple[str, ...]:
    """Return the names of the tables that every analysis has, or of those with a reference's values, in order."""
    return tuple(name for name, query in all_analyses().items() if query.reference == reference)


def check_names(
    *,
    sections: Iterable[str] = (),
    tables: Iterable[str] = (),
    reference: str | None = None,
    own: Sequence[Query] = (),
) -> None:
    """Reject unknown names of sections, tables or references, before any work is done.

    Args:
        sections: names to check.
        tables: names to check.
        reference: name to check.
        own: analyses of files that also exist.

    Raises:
        UsageError: a name is unknown; the message suggests similar ones.
    """
    for kind, names, there in (
        ("section", sections, tuple(key for key, _ in SECTIONS)),
        ("table", tables, None),
        ("reference", () if reference is None else (reference,), REFERENCES),
    ):
        for name in names:
            allowed = (*all_analyses(), *(query.name for query in own)) if there is None else there
            if name not in allowed:
                hint = meant(name, allowed)
                if kind == "table" and hint.endswith("?"):
                    hint += " gpuctl analyses lists all tables"
                raise UsageError(f"there is no {kind} {name!r}", hint=hint)
