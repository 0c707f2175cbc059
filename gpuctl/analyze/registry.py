"""The registry of results: which tables an analysis has, in the order they are shown, and where each is from.

A new analysis of ours is one file in `queries/`, found by itself. Packages add theirs by the group of entry points
``gpuctl.analyses``: the value ``MODULE`` stands for every ``.sql`` file beside that module, ``MODULE:NAME`` for
``NAME.sql`` alone. A reader's own is a file that they name. What is not ours runs as a query of the reader's does: one
SELECT, which reads the store alone.
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
SAYS = ("cluster", "telemetry_note", "idle_below", "charge_by", "charge_zone", *SITE_NOTES)
"""Placeholders of populations in addition to the numbers of ``queries/base/population.sql``."""

_ENDING = ".sql"
_LARGEST = 1_000_000
_HINT = "docs/how-to/add-an-analysis.md describes what a SQL file must contain"
_log = logging.getLogger(__name__)


@cache
def known() -> dict[str, Query]:
    """Every analysis there is, those of installed packages among them, by name, in the order in which they are shown.

    What a package has that cannot be used is named in a warning, once, and the others are returned.
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
    """The entry points of packages that add analyses; nothing of them is read."""
    return plugins.installed("analysis", GROUP)


def of_package(plugin: plugins.Plugin) -> list[Query]:
    """The analyses that an entry point stands for.

    Raises:
        InputError: its module cannot be imported, has no such files, or a header is not as it should be.
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
    """The analysis of a file that the user has named.

    Raises:
        UsageError: there is no such file, or there is an analysis of its name.
        InputError: it cannot be read, or its header is not as it should be.
    """
    from gpuctl.core.file_io import read_whole
    from gpuctl.core.path_checks import is_file

    if not is_file(path):
        raise UsageError(f"{str(path)[:200]}: no such file", hint="--table FILE.sql")
    try:
        found = _checked(path.stem, read_whole(path, most=_LARGEST).decode("utf-8"), f"file {path}")
    except ValueError as error:
        raise InputError(str(error), path=str(path), hint=_HINT) from None
    if found.name in known():
        conflict = _twice(found.name, known()[found.name].origin, found.origin)
        raise UsageError(conflict, hint="rename the file")
    return found


def with_files(names: Iterable[str]) -> tuple[list[str], tuple[Query, ...]]:
    """Names of tables, files of SQL among them by the names of theirs; and the analyses of these files.

    Raises:
        UsageError, InputError: as of `of_file`; two files are of one name.
    """
    files = {name: of_file(Path(name)) for name in names if name.endswith(_ENDING)}
    own = tuple(files.values())
    for k, query in enumerate(own):
        if query.name in {other.name for other in own[:k]}:
            raise UsageError(_twice(query.name, *(q.origin for q in own if q.name == query.name)))
    return [files[name].name if name in files else name for name in names], own


def named(name: str) -> Query:
    """The analysis of that name, or of the file ``FILE.sql``.

    Raises:
        UsageError: there is none.
        InputError: the file, or what a package has, cannot be used.
    """
    if name.endswith(_ENDING):
        return of_file(Path(name))
    check_names(tables=[name])
    return known()[name]


def _checked(name: str, text: str, origin: str) -> Query:
    """Read what others have written, and see that it asks for nothing that is not there.

    Raises:
        ValueError: it does.
    """
    from gpuctl.analyze.shared_sql import numbers
    from gpuctl.core.notes import fields

    found = replace(read(name, text), origin=origin)
    strange = fields(found.population) - {*SAYS, *numbers("population")}
    if strange:
        raise ValueError(f"population: the number does not exist: {{{min(strange)}}}")
    if found.needs and found.needs.replace(" ", "_") not in numbers("counts"):
        raise ValueError(f"needs: {found.needs!r} is not a kind of data that gpuctl knows")
    if found.parameters - {"cluster"}:
        raise ValueError(f"there is no parameter ${min(found.parameters - {'cluster'})}; there is $cluster")
    if found.reference:
        raise ValueError("reference: only gpuctl's own analyses print published values")
    return found


def tables(reference: str = "") -> tuple[str, ...]:
    """The names of the tables that every analysis has, or of those that print a reference's values, in their order."""
    return tuple(name for name, query in known().items() if query.reference == reference)


def check_names(
    *,
    sections: Iterable[str] = (),
    tables: Iterable[str] = (),
    reference: str | None = None,
    own: Sequence[Query] = (),
) -> None:
    """Refuse names that no section, table or reference has, before any work is done.

    Args:
        sections: to look for.
        tables: to look for.
        reference: to look for.
        own: analyses of files that there are, too.

    Raises:
        UsageError: names the nearest ones that there are.
    """
    for kind, names, there in (
        ("section", sections, tuple(key for key, _ in SECTIONS)),
        ("table", tables, None),
        ("reference", () if reference is None else (reference,), REFERENCES),
    ):
        for name in names:
            allowed = (*known(), *(query.name for query in own)) if there is None else there
            if name not in allowed:
                hint = meant(name, allowed)
                if kind == "table" and hint.endswith("?"):
                    hint += " gpuctl analyses lists all tables"
                raise UsageError(f"there is no {kind} {name!r}", hint=hint)
