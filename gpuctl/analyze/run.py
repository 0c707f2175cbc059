"""Runs the analyses of one cluster: executes the queries and documents the results."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gpuctl.analyze import caveats, counters, registry, shared_sql
from gpuctl.analyze.caveats import Caveat
from gpuctl.analyze.cluster import cluster_note
from gpuctl.analyze.options import Options
from gpuctl.analyze.reliability_events import EVENTS_OF_NODES
from gpuctl.analyze.shared_tables import DELAYS, SharedTables, set_memory
from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.notes import fields, literal, note, untrusted
from gpuctl.core.plugins import BUILT_IN
from gpuctl.core.results import Analysis, ResultTable
from gpuctl.core.suggestions import meant
from gpuctl.queries.catalogue import in_order
from gpuctl.queries.sections import SECTIONS
from gpuctl.store.sources import read_sources
from gpuctl.store.views import as_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from gpuctl.core.notes import Note
    from gpuctl.queries.catalogue import Query
    from gpuctl.store.database import Store


_GANG = re.compile(r"(?<![_\w])([Gg])ang(s)?\b('s)?(?!_)")
PODS = "a row of jobs is a {unit}: the trace does not record which of them belong together, so sizes are of one {unit}"


def of_units(query: Query, unit: str) -> Query:
    """Return an analysis worded for a trace whose rows are pods or instances.

    Args:
        query: as written for jobs.
        unit: ``pod`` or ``instance``.
    """
    return replace(
        query,
        title=_in(query.title, unit),
        question=_in(query.question, unit),
        population=_in(query.population, unit),
        columns=tuple(replace(column, description=_in(column.description, unit)) for column in query.columns),
        drawings=tuple(_in(text, unit) for text in query.drawings),
    )


def _in(text: str, unit: str) -> str:
    def word(found: re.Match[str]) -> str:
        name = unit.capitalize() if found[1] == "G" else unit
        return name + (found[2] or "") + (found[3] or "")

    # column names do not change
    return _GANG.sub(word, text)


def analyze(store: Store, options: Options, progress: Callable[[str, int, int], None] | None = None) -> Analysis:
    """Run all analyses (or those of `options.sections` and `options.tables`) on one cluster of an open store.

    The store is only read. Queries share temporary tables (`gpuctl.analyze.shared_tables`), created only if a requested
    table needs them.

    Args:
        store: an open store.
        options: the options that shape the figures.
        progress: called with (current step, steps done, total steps).

    Raises:
        UsageError: the store has several clusters and none is named, or lacks the named one.
        InputError: quotas are set for unknown queues, and not for all of its own.
    """
    cluster = store.cluster(options.cluster)
    known = registry.all_analyses() | {one.name: one for one in options.own}
    names = _tables(options, known)
    if options.brief and not store.value(EVENTS_OF_NODES, {"cluster": cluster}):
        # without events of nodes few causes show, and finding them takes longer than the rest of a first screen
        names = [name for name in names if name != "mttf_by_size"]
    queries = [known[name] for name in _with_needed(names, known)]
    read = {name for one in queries for name in shared_sql.uses(one.sql, "result")}
    called = cluster_note(store, cluster)
    unit = store.value("SELECT unit FROM clusters WHERE cluster = $cluster", {"cluster": cluster})
    _check_parameters(options, queries)
    steps = len(queries) + 2
    done = 0

    def notify(text: str) -> None:
        if progress is not None:
            progress(text, done, steps)

    notify("reading jobs")
    set_memory(store)
    counted = _counted(queries)
    shared = SharedTables(store, cluster, options, notify, _statements(queries, counted), numbers=counted)
    found: dict[str, ResultTable] = {}
    found_caveats = caveats.find(store, shared, cluster)
    found_caveats += [Caveat(1.0, literal(PODS.format(unit=unit)))] if unit else []
    for done, one in enumerate(queries, 1):  # noqa: B007 - tell() says how far it is
        notify(one.name)
        try:
            query = of_units(one, unit) if unit else one
            table = _ask(store, query, shared, called, options, kept=one.name in read)
            found[one.name] = replace(table, charts=query.drawings) if query.drawings != one.drawings else table
        except InputError as error:
            # an unrequested third-party analysis must not keep others from their rows
            if one.name in options.tables or one.origin == BUILT_IN:
                raise
            found_caveats.append(Caveat(0.0, untrusted(f"{error.message}. Its table is left out")))
    site = shared.site
    tables = tuple(found[name] for name in names if name in found)
    settings = {"definition": literal(options.definition), "duration": literal(shared.duration)}
    if shared.matching is not None:
        chosen = options.filter.description(*shared.matching)
        settings["filter"] = note("{chosen}{rest}", chosen=chosen, rest=IN_THAT_TIME if shared.has_times else NOTHING)
    given = store.value("SELECT count(*) FROM base_jobs WHERE list_contains(quirks, 'gpus_given')")
    if given:
        settings["gpus_per_node"] = note("given by the user, for {jobs:,} job{jobs||s}", jobs=given)
    if site is not None:
        settings |= {"quotas": site.quota_note, "racks": site.rack_note, "borrowing": site.borrow_note}
    done = steps
    notify("done")
    return Analysis(
        cluster=called,
        tables=tables,
        sections=tuple((key, title) for key, title in SECTIONS if any(t.section == key for t in tables)),
        sources=read_sources(store, cluster),
        settings=settings,
        command=options.command,
        warnings=caveats.ranked([*caveats.of_causes(store, shared), *caveats.of_series(store, shared), *found_caveats]),
    )


def _check_parameters(options: Options, queries: Sequence[Query]) -> None:
    """Refuse a parameter that no analysis has.

    Raises:
        UsageError: there is one.
    """
    known = sorted({each.name for query in queries for each in query.settings})
    strange = next((name for name in options.parameters if name not in known), None)
    if strange is not None:
        hint = meant(strange, known) if known else "a file's header declares them: -- parameter: name | default | ..."
        raise UsageError(f"--set {strange}: no table here has this parameter", hint=hint)


def _counted(queries: Sequence[Query]) -> dict[str, frozenset[str]]:
    """Return the numbers in tables' sentences and notes, by the file that defines them."""
    names = frozenset(name for one in queries for name in fields(one.population))
    needs = frozenset(one.needs.replace(" ", "_") for one in queries if one.needs)
    return {"population": names & shared_sql.numbers("population"), "counts": needs & shared_sql.numbers("counts")}


def _statements(queries: Sequence[Query], counted: Mapping[str, Collection[str]]) -> list[str] | None:
    """Return all statements on the shared tables; None with a third-party analysis, which may read anything."""
    if any(one.origin != BUILT_IN for one in queries):
        return None
    numbers = [shared_sql.scalars(kind, names) for kind, names in counted.items() if names]
    if any(fields(one.population) & set(registry.SITE_NOTES) for one in queries):
        numbers.append("FROM base_delays")
    return [*(one.sql for one in queries), *numbers, *caveats.statements()]


def _tables(options: Options, known: Mapping[str, Query]) -> list[str]:
    """Return the requested tables, in display order."""
    registry.check_names(sections=options.sections, tables=options.tables, reference=options.reference, own=options.own)
    every = not options.sections and not options.tables

    def wanted(one: Query) -> bool:
        if one.reference and not options.tables:
            return one.reference == options.reference
        shown = every and (options.exports or not one.only_exported)
        return one.name in options.tables or (not one.reference and (shown or one.section in options.sections))

    return [one.name for one in in_order(known.values()) if wanted(one)]


def _with_needed(names: Sequence[str], known: Mapping[str, Query]) -> list[str]:
    """Return the tables to compute: the requested ones, each after those that its SQL reads."""
    ordered: dict[str, None] = {}
    for name in names:
        uses = (each for each in shared_sql.uses(known[name].sql, "result") if each in known)
        for needed in _with_needed(list(uses), known):
            ordered.setdefault(needed)
        ordered.setdefault(name)
    return list(ordered)


ABOUT_ALL = literal("Covers the whole cluster: filters do not apply to these rows.")
NOTHING = literal("")
IN_THAT_TIME = literal("; GPU-hours are those held in that time, by jobs submitted before it, too")
WITHIN = literal(
    "With --since or --until, GPU-hours are those held in that time, by jobs submitted before it, too; all else is of "
    "jobs submitted in it."
)
PARTLY_ALL = literal("Figures of the cluster (its GPUs, its times, the share allocated) cover all jobs.")


def _numbers(store: Store, query: Query, shared: SharedTables, called: Note, options: Options) -> dict[str, Note]:
    """Return the numbers of a table's population sentence; only those are counted."""
    wanted = fields(query.population)
    known = {
        "cluster": called,
        "idle_below": note("{pct:g}", pct=options.idle_below),
        "charge_by": literal(options.by or "month"),
        "period_zone": literal(options.period_zone or "the zone of the log"),
    }
    if "telemetry_note" in wanted:
        known["telemetry_note"] = counters.sentence(
            store, shared.cluster, by_start_minute=options.definition == "notebook"
        )
    if wanted & set(registry.SITE_NOTES):
        shared.ensure(DELAYS)
        site = shared.site
        known |= {name: getattr(site, name) for name in registry.SITE_NOTES}
    counted = wanted - set(known)
    if counted:
        numbers = shared.scalars("population", sorted(counted), whole=shared.about_all(query.sql))
        known |= {key: _plain(value) for key, value in numbers.items()}
    return known


def _ask(
    store: Store, query: Query, shared: SharedTables, called: Note, options: Options, *, kept: bool
) -> ResultTable:
    """Return one table; `called`: the cluster's name; `kept`: other analyses read it, as ``result_<name>``."""
    if query.origin == BUILT_IN:
        sql = shared.resolve_tables(query.sql)
        if kept:
            store.execute(f"CREATE OR REPLACE TEMP TABLE result_{query.name} AS {sql}", shared.bind(sql))
            frame = _tidy(store.frame(f"FROM result_{query.name}", long=query.only_exported))
        else:
            frame = _tidy(store.frame(sql, shared.bind(sql), long=query.only_exported))
    else:
        frame = _of_others(store, query, shared, _values(query, shared.cluster, options))
    notes: tuple[Note, ...] = ()
    if query.needs:
        there = shared.scalars("counts", [query.needs.replace(" ", "_")], whole=True)
        what = query.needs.replace("_", " ")
        notes = () if any(there.values()) else (note("no rows: this source has no {what}", what=literal(what)),)
    if shared.about_all(query.sql):
        notes = (*notes, ABOUT_ALL)
    elif shared.matching is not None and shared_sql.uses(query.sql, "unfiltered"):
        notes = (*notes, PARTLY_ALL)
    if shared.within_times(query.sql):
        notes = (*notes, WITHIN)
    return ResultTable(
        name=query.name,
        section=query.section,
        title=query.title,
        question=query.question,
        population=note(query.population, **_numbers(store, query, shared, called, options)),
        notes=notes,
        columns=query.columns,
        frame=frame,
        detail=query.detail,
        first_columns=query.first_columns,
        key_columns=query.key_columns,
        charts=() if query.origin == BUILT_IN else query.drawings,
    )


def _values(query: Query, cluster: str, options: Options) -> dict[str, str | int | float]:
    """The values of the parameters in an analysis that is not ours."""
    values: dict[str, str | int | float] = {each.name: each.default for each in query.settings}
    values |= {name: value for name, value in options.parameters.items() if name in values}
    return {name: value for name, value in {"cluster": cluster, **values}.items() if name in query.parameters}


def _of_others(store: Store, query: Query, shared: SharedTables, wanted: Mapping[str, object]) -> pl.DataFrame:
    """Return the rows of a third-party analysis: one SELECT, which reads the store and gpuctl's shared tables.

    Raises:
        InputError: it is not a SELECT, cannot be run, or its columns differ from its header.
    """
    there = {
        name
        for one in registry.all_analyses().values()
        if one.origin == BUILT_IN
        for name in shared_sql.uses(one.sql, "base")
    }
    used = {*shared_sql.uses(query.sql, "base"), *shared_sql.uses(query.sql, "unfiltered")}
    sql = shared.resolve_tables(query.sql) if used <= there else query.sql
    what = f"analysis {query.name!r} of {query.origin}"
    try:
        frame = as_plain(store.read_only_query(sql, wanted))
    except UsageError as error:
        raise InputError(f"{what}: {error.message}", hint=error.hint) from error
    names = [column.name for column in query.columns]
    if frame.columns != names:
        found_text = f"its header names the columns {', '.join(names)}; its rows have {', '.join(frame.columns)}"
        raise InputError(
            f"{what}: {found_text}", hint="one line '-- column: name | unit | definition' for each, in order"
        )
    return frame


def _tidy(frame: pl.DataFrame) -> pl.DataFrame:
    """Convert decimals to integers: DuckDB sums integers with 128 bits, which arrive as decimals."""
    wide = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Decimal)]
    return frame.with_columns(pl.col(wide).cast(pl.Int64)) if wide else frame


def _plain(value: object) -> Note:
    return note("{value:,}", value=value) if isinstance(value, int) else untrusted(str(value))
