"""Makes the temporary tables that analyses share, each of them once, on first use.

The SQL of a table shows its dependencies: ``base_X`` is a shared table and ``result_X`` another result. With a filter,
``base_X`` in an analysis means the rows of matching jobs, and ``unfiltered_X`` those of all jobs: the tables ``base_X``
themselves always cover all jobs, and ``chosen_X`` is derived from them (`SharedTables.resolve_tables`). Five steps are
not SQL; `_STEPS` lists the tables that each of them makes and needs. Each imports its libraries when it runs: they take
longer to load than a small table takes to compute.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpuctl.analyze import shared_sql, telemetry_once, telemetry_summary
from gpuctl.core.suggestions import check_queues
from gpuctl.queries.catalogue import parameters
from gpuctl.store.sources import LAST_SAMPLES, SOURCE_ENDS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    import polars as pl

    from gpuctl.analyze.delay_table import Site
    from gpuctl.analyze.options import Options
    from gpuctl.store.database import Store

DELAYS = ("delays", "quotas", "racks", "cause_ranges", "delay_settings", "sampled_causes")
"""What the split of delays makes."""
_DELAYS_NEED = (
    "jobs", "attempts", "placements", "holdings", "machines", "machine_events", "queue_machines", "queues",
    "gpu_limits", "owners", "queue_samples", "reasons", "gang_machines",
)  # fmt: skip
_RECOMPUTED = frozenset(
    {
        *("waits", "runs", "wait_survival", "util_pieces", "util_histogram", "job_use", "cause_hours"),
        *("period_pieces", "charge_pieces", "charge_sums"),
    }
)
"""Shared tables that are made of the jobs chosen as they are of all: nothing is made of all first, nor read of the
telemetry, that no analysis asks for."""
_WITHIN = frozenset({"spans", "held"})
"""With --since or --until, ``<name>_within`` is what they have of that time, of jobs submitted before, too."""
_FRAGMENTATION_NEEDS = (
    "machines", "racks", "placements", "holdings", "machines_down", "queue_machines", "waiting_gangs", "log_span",
)  # fmt: skip
_FAILURES = ("failed", "failures")
_WIDE = frozenset({"attempts", "jobs", "placements"})
"""Shared tables of which only those columns are made that something may read: of a million jobs, each costs time."""
MADE_OF = {
    **dict.fromkeys(("job_use", "util_histogram", "attempt_use"), "gpu_samples"),
    **dict.fromkeys(("progress", "training"), "progress"),
}
"""Shared tables without a row where a table of the store has none of the cluster: ``<name>_none`` stands for them."""
_KEYS = frozenset({"job", "attempt", "number", "machine"})
"""Columns of these that are always made."""
_OWNERS = ("user", "queue", "account")
"""Whose figures ``queries/base/owner_*.sql`` make: base_user_figures, base_queue_activity and so on."""
_MANY_JOBS = 1_500_000
_MEMORY, _BESIDE_ARRAYS = "800MB", "400MB"
"""What DuckDB may take for no more jobs than that, alone and beside what Python holds to split waits: what it spills
costs time. A million jobs take 1.4 GB at most."""
RELIABILITY = tuple(
    f"reliability_{name}"
    for name in (
        *("interruptions", "interrupted_attempts", "failure_rates", "mttf_by_size", "ettr", "goodput_loss"),
        *("lemon_nodes", "availability", "xids", "checkpoint_advice", "reliability_whatif"),
        *("failure_rate_ratios", "failure_gaps", "failure_changes", "xids_by_month", "xid_pairs"),
    )
)
_MACHINES = ("machine_failures", "machine_trials", "machine_units", "bad_machines")


class SharedTables:
    """The shared tables of one cluster of an open store, which is only read.

    Attributes:
        cluster: its name in the store.
        duration: definition of a job's run time, see `Options.duration`.
        site: origin of quotas, racks and the rule of borrowing; None until a table needs the delays.
        kept: numbers of matching jobs and of all jobs; None without a filter.
    """

    def __init__(
        self,
        store: Store,
        cluster: str,
        options: Options,
        notify: Callable[[str], None],
        statements: Iterable[str] | None = None,
        *,
        numbers: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Create no table yet.

        Args:
            store: open.
            cluster: its name in the store.
            options: the options that shape the figures.
            notify: called with the current step.
            statements: all statements to come, so that no unused column is made; None: unknown.
            numbers: the numbers that `scalars` will return, by file.
        """
        self.site: Site | None = None
        self._store, self.cluster, self._options, self._notify = store, cluster, options, notify
        self._notebook = options.definition == "notebook"
        self.duration = "span" if self._notebook else options.duration or _known_duration(store, cluster)
        self._values = {
            "cluster": cluster,
            "duration": self.duration,
            "whole_minutes": self._notebook,
            "by": options.by or "hour",
            "charge_by": options.by or "month",
            "period_zone": options.period_zone,
            "forgive": ",".join(options.forgive),
            "idle_below": options.idle_below,
            "since": None,
            "until": None,
        }
        self._made: set[str] = set()
        self._numbers = numbers or {}
        self._there: dict[str, bool] = {}
        self._instead = {"waits": "waits_notebook"} if self._notebook else {}
        if options.brief:
            self._instead["job_use"] = "job_use_brief"
        self._narrowed: dict[str, str] = {}
        self._scalars: dict[tuple[str, str, bool], Any] = {}
        self.matching: tuple[int, int] | None = None
        if options.filter:
            from gpuctl.analyze.filtered_jobs import choose

            self.matching, period = choose(store, cluster, options.filter)
            self._values |= period
        self._read_by = None if statements is None else self._readers(statements)

    def ensure(self, names: Iterable[str]) -> None:
        """Make tables, named without ``base_``, unless they exist."""
        for name in names:
            if name not in self._made:
                self._make(name)

    def has(self, name: str) -> bool:
        """Return whether a table exists already."""
        return name in self._made

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of ``queries/base/<name>.sql``, after making the tables that it needs."""
        return self.ask(shared_sql.base_sql(name))

    def ask(self, sql: str, *, whole: bool = False) -> list[dict[str, Any]]:
        """Return the rows of a statement, after making the tables that it needs; `whole`: of all jobs."""
        return self.frame(sql, whole=whole).to_dicts()

    def frame(self, sql: str, *, whole: bool = False) -> pl.DataFrame:
        """Return them as columns."""
        made = self.resolve_tables(sql, whole=whole)
        return self._store.frame(made, self.bind(made))

    def scalars(self, name: str, wanted: Iterable[str], *, whole: bool = False) -> dict[str, Any]:
        """Return numbers of ``queries/base/<name>.sql``, each computed once: many tables share a population.

        Computes further expected numbers whose tables exist at the same time: a statement costs more than a number.
        """
        wanted = list(wanted)
        missing = [key for key in wanted if (name, key, whole) not in self._scalars]
        if missing:
            if whole or self.matching is None:
                left = (key for key in self._numbers.get(name, ()) if (name, key, whole) not in self._scalars)
                missing = [*{*missing, *(key for key in left if shared_sql.reads(name)[key] <= self._made)}]
            rows = self.ask(shared_sql.scalars(name, missing), whole=whole)
            self._scalars |= {(name, row["name"], whole): row["value"] for row in rows}
        return {key: self._scalars[name, key, whole] for key in wanted}

    def resolve_tables(self, sql: str, *, whole: bool = False) -> str:
        """Return a statement with the names of the tables to read, all of them made; `whole`: those of all jobs."""
        self.ensure(shared_sql.uses(sql, "unfiltered"))
        if self.matching is None or whole:
            self.ensure(shared_sql.uses(sql, "base"))
        else:
            names = {name: self._filtered_table(name) for name in shared_sql.uses(sql, "base")}
            sql = re.sub(r"\bbase_([a-z0-9_]+)", lambda found: names.get(found[1], found[0]), sql)
        return re.sub(r"\bunfiltered_([a-z0-9_]+)", r"base_\1", sql)

    @property
    def has_times(self) -> bool:
        """Whether the filter chooses a time."""
        return self._values["since"] is not None or self._values["until"] is not None

    def within_times(self, sql: str) -> bool:
        """Return whether GPU-hours of a statement are those held within the time that the filter chooses."""
        return self.has_times and bool(self._reads(sql) & _WITHIN)

    def _reads(self, sql: str) -> set[str]:
        """Return the shared tables of the chosen jobs that a statement is made from."""
        found, left = set[str](), list(shared_sql.uses(sql, "base"))
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += [] if name in _WITHIN else shared_sql.uses(self._sql(name)[0], "base")
        return found

    def about_all(self, sql: str) -> bool:
        """Return whether a statement is independent of the filter: it is about the cluster."""
        return (
            self.matching is not None
            and all(self._filtered_table(name) == f"base_{name}" for name in shared_sql.uses(sql, "base"))
            and not shared_sql.uses(sql, "result")
        )

    def _filtered_table(self, name: str) -> str:
        """Return the filtered table for ``base_<name>``; ``base_<name>`` itself if it is not about jobs."""
        if name not in self._narrowed:
            sql, more = self._sql(name)
            if name in _WITHIN and self.has_times:
                sql = self.resolve_tables(shared_sql.base_sql(f"{name}_within"))
            elif name in _RECOMPUTED or more:
                sql = self.resolve_tables(sql)
            else:
                self.ensure((name,))
                sql = self._of_chosen(name)
            self._narrowed[name] = f"chosen_{name}" if sql else f"base_{name}"
            if sql:
                self._store.execute(f"CREATE OR REPLACE TEMP TABLE chosen_{name} AS {sql}", self.bind(sql, **more))
        return self._narrowed[name]

    def _of_chosen(self, name: str) -> str:
        """Return the SELECT of the filtered rows of ``base_<name>``; "" if it is not about jobs."""
        if name == "cause_ranges":
            # a result of rules over all waits does not apply to some of them
            return "SELECT * REPLACE (NULL::DOUBLE AS low_s, NULL::DOUBLE AS high_s) FROM base_cause_ranges"
        if "job" not in self._store.frame(f"DESCRIBE base_{name}")["column_name"].to_list():
            return ""
        return f"SELECT * FROM base_{name} SEMI JOIN base_filtered_jobs USING (job)"  # noqa: S608 - ours, as below

    def _readers(self, statements: Iterable[str]) -> list[tuple[frozenset[str], frozenset[str]]]:
        """Return statements with the SQL of the tables that they read: the tables of each, and its words."""
        left, known, found = list(statements), set[str](), []
        while left:
            text = left.pop()
            reads = frozenset({*shared_sql.uses(text, "base"), *shared_sql.uses(text, "unfiltered")})
            found.append((reads, shared_sql.words(text)))
            for name in reads - known:
                known.add(name)
                step = next((step for step in _STEPS if name in step[0]), None)
                if step is None:
                    left.append(self._sql(name)[0])
                    left += [shared_sql.base_sql(f"{name}_within")] if name in _WITHIN and self.has_times else []
                elif step[0] in _READ:
                    left.append(_READ[step[0]] + "".join(f" base_{needed}" for needed in step[1]))
        return found

    def _columns(self, name: str, sql: str, values: dict[str, Any]) -> str:
        """Return the columns of a shared table to make: those named by statements that read it."""
        if self._read_by is None or name not in _WIDE:
            return "*"
        wanted = _KEYS | (self._words(name) or frozenset())
        there = [row[0] for row in self._store.execute(f"DESCRIBE {sql}", values).fetchall()]
        return ", ".join(f'"{column}"' for column in there if column in wanted)

    def _words(self, name: str) -> frozenset[str] | None:
        """Return all words, including columns, of the statements that read a shared table; None: it may be any."""
        if self._read_by is None:
            return None
        return frozenset().union(*(words for reads, words in self._read_by if name in reads))

    def _make(self, name: str) -> None:
        step = next((step for step in _STEPS if name in step[0]), None)
        if step is not None:
            makes, needs, make = step
            self.ensure(needs)
            make(self)
            self._made.update(makes)
            return
        if name == "util_histogram" and not self._notebook and telemetry_summary.use(self._store, self.cluster):
            self._made.add(name)
            return
        sql, more = self._sql(name)
        sql = self.resolve_tables(sql, whole=True)
        values = self.bind(sql, **more)
        # every part of this text is a constant of gpuctl: names and SQL from queries/
        made = f"CREATE OR REPLACE TEMP TABLE base_{name} AS SELECT {self._columns(name, sql, values)} FROM ({sql})"  # noqa: S608
        self._store.execute(made, values)
        self._made.add(name)

    def _sql(self, name: str) -> tuple[str, dict[str, str]]:
        """Return the SQL of a shared table, and the values of its own parameters; "" for a table of a step."""
        if any(name in step[0] for step in _STEPS):
            return "", {}
        owner, _, kind = name.partition("_")
        if owner in _OWNERS and kind in {"figures", "activity", "requests"}:
            return shared_sql.base_sql(f"owner_{kind}"), {"owner": owner}
        if name in MADE_OF and name not in self._instead and not self._has_rows(MADE_OF[name]):
            return shared_sql.base_sql(f"{name}_none"), {}
        return shared_sql.base_sql(self._instead.get(name, name)), {}

    def _has_rows(self, table: str) -> bool:
        if table not in self._there:
            # one of the names above
            sql = f"SELECT EXISTS (FROM {table} WHERE cluster = $cluster)"
            self._there[table] = bool(self._store.value(sql, {"cluster": self.cluster}))
        return self._there[table]

    def bind(self, sql: str, **more: str) -> dict[str, Any]:
        """Return the values of the parameters of a statement, including `more`."""
        values = self._values | more
        return {key: values[key] for key in parameters(sql)}

    def _ends(self) -> None:
        for name, sql in (("source_ends", SOURCE_ENDS), ("last_samples", LAST_SAMPLES)):
            self._store.execute(f"CREATE OR REPLACE TEMP TABLE base_{name} AS {sql}", {"cluster": self.cluster})

    def _telemetry(self) -> None:
        telemetry_once.make(self._store, self.cluster)

    def _reasons(self) -> None:
        import polars as pl

        self._store.keep("base_reasons", pl.read_csv(shared_sql.reasons()))

    def _prices(self) -> None:
        import polars as pl

        price = pl.Decimal(12, 6)
        days: dict[str, Any] = {"from_date": pl.Date, "to_date": pl.Date}
        schema = {"gpu_type": pl.String, "price": price, "account": pl.String, **days}
        self._store.keep("base_prices", pl.DataFrame(self._options.prices, schema, orient="row"))

    def _delays(self) -> None:
        from gpuctl.analyze import delay_table

        self._notify("explaining waits")
        options = self._options
        if options.quotas:
            queues = self._store.frame("SELECT queue FROM base_queues UNION SELECT queue FROM base_jobs")
            check_queues(options.quotas, queues["queue"].to_list())
        with _beside_arrays(self._store):
            self.site = delay_table.build(
                self._store,
                quotas=options.quotas,
                racks=options.racks,
                borrow_below=options.borrow_below,
                wanted=self._words("delays"),
            )

    def _fragmentation(self) -> None:
        from gpuctl.analyze import fragmentation

        self._notify("placing waiting gangs")
        with _beside_arrays(self._store):
            fragmentation.build(self._store, self._options.by or "hour")

    def _failures(self) -> None:
        from gpuctl.analyze import failure_table
        from gpuctl.joblogs.table import load as load_signatures

        self._notify("classifying failures")
        failure_table.build(
            self._store, self.cluster, load_signatures(self._options.signatures, learned=self._options.learned)
        )

    def _reliability(self) -> None:
        from gpuctl.analyze import reliability_tables
        from gpuctl.joblogs.table import load as load_signatures

        self._notify("finding causes of interruptions")
        # without lines of logs only signatures of the user are read, for their errors
        some = self._has_rows("job_logs") or self._options.signatures
        table = load_signatures(self._options.signatures, learned=self._options.learned) if some else None
        period = (self._instant("since"), self._instant("until"))
        with _beside_arrays(self._store):
            reliability_tables.build(self._store, self.cluster, table, self._options.reliability, period)

    def _instant(self, name: str) -> float | None:
        """Return an end of the period that the filter sets, in seconds since 1970."""
        when: Any = self._values[name]
        return None if when is None else float(when.timestamp())

    def _like_waits(self) -> None:
        from gpuctl.analyze import like_waits

        like_waits.build(self._store)

    def _machines(self) -> None:
        from gpuctl.analyze import bad_machines

        self._notify("testing machines")
        bad_machines.build(self._store)


_STEPS: tuple[tuple[tuple[str, ...], tuple[str, ...], Callable[[SharedTables], None]], ...] = (
    (("source_ends", "last_samples"), (), SharedTables._ends),
    (("reasons",), (), SharedTables._reasons),
    (("prices",), (), SharedTables._prices),
    (tuple(telemetry_once.TABLES), (), SharedTables._telemetry),
    (DELAYS, _DELAYS_NEED, SharedTables._delays),
    (("fragmentation",), _FRAGMENTATION_NEEDS, SharedTables._fragmentation),
    (
        _FAILURES,
        ("attempts", "jobs", "machine_events", "placements", "gang_machines", "reasons"),
        SharedTables._failures,
    ),
    (("like_waits",), ("attempts",), SharedTables._like_waits),
    (RELIABILITY, ("attempts", "jobs", "placements", "machines"), SharedTables._reliability),
    (_MACHINES, ("attempts", "gang_machines", "failed", "failures"), SharedTables._machines),
)
_READ = {
    DELAYS: (
        "user account qos queue gpus cpus gpu_type gpu_type_request servers size_bucket queued_ts start_ts start_c "
        "held_from_c held_until_c eligible_c wait_s priority source_reason by_container"
    ),
    ("fragmentation",): "gpus held_from_ts held_until_ts by_container",
    _FAILURES: shared_sql.base_sql("failed_attempts") + shared_sql.base_sql("failed_lines"),
    RELIABILITY: " ".join(
        shared_sql.base_sql(name)
        for name in ("reliability_attempts", "reliability_nodes", "reliability_points", "failed_lines", "line_attempts")
    )
    + " number machine gpus job attempt state",
    ("like_waits",): "queue size_bucket queued_ts wait_s",
    _MACHINES: shared_sql.base_sql("machine_failures") + shared_sql.base_sql("machine_trials"),
}
"""What steps read of shared tables, by what they make: columns by name, or in SQL."""


def set_memory(store: Store, limit: str = _MEMORY) -> None:
    """Set DuckDB's memory limit, if there are few enough jobs."""
    if store.value("SELECT count(*) FROM jobs") <= _MANY_JOBS:
        store.execute(f"SET memory_limit = '{limit}'")


@contextmanager
def _beside_arrays(store: Store) -> Iterator[None]:
    """Lower DuckDB's memory limit while arrays of all attempts are in memory."""
    before = store.value("SELECT current_setting('memory_limit')")
    set_memory(store, _BESIDE_ARRAYS)
    yield
    # a constant of gpuctl, in DuckDB's form
    store.execute(f"SET memory_limit = '{before}'")


def _known_duration(store: Store, cluster: str) -> str:
    sql = "SELECT count(run_span_s), count(run_sum_s) FROM jobs WHERE cluster = $cluster"
    [(spans, sums)] = store.execute(sql, {"cluster": cluster}).fetchall()
    return "sum" if sums and not spans else "span"
