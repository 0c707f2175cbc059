"""Makes the temporary tables that analyses share, each of them once, when something first asks for it.

What a table needs is read from its SQL: it names ``base_X`` for a shared table and ``result_X`` for another result.
Five steps are no SQL; `_STEPS` says which tables each of them makes and what it needs. Each imports what it is made
with when it runs: the libraries behind it take longer to load than a small table to compute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuctl.analyze import query
from gpuctl.core.spelling import check_queues
from gpuctl.queries.catalogue import parameters
from gpuctl.store.sources import LAST_SAMPLES, SOURCE_ENDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpuctl.analyze.delay_table import Site
    from gpuctl.analyze.run import Options
    from gpuctl.store.database import Store

DELAYS = ("delays", "quotas", "racks", "cause_ranges", "delay_settings", "sampled_causes")
"""What the split of delays makes."""
_DELAYS_NEED = (
    "jobs", "attempts", "placements", "machines", "machine_events", "queue_machines", "queues", "gpu_limits", "owners",
    "queue_samples", "reasons",
)  # fmt: skip
_FRAGMENTATION_NEEDS = (
    "machines", "racks", "placements", "machines_down", "queue_machines", "waiting_gangs", "log_span",
)  # fmt: skip
_FAILURES = ("failed", "failures")
_OWNERS = ("user", "queue", "account")
"""Whose figures ``queries/base/owner_*.sql`` make: base_user_figures, base_queue_activity and so on."""
_MACHINES = ("machine_failures", "machine_trials", "machine_units", "bad_machines")


class Bases:
    """The shared tables of one cluster of an open store, which is only read.

    Attributes:
        duration: what a job's run time is, see `Options.duration`.
        site: where quotas, racks and the rule of borrowing came from; None as long as no table needed the delays.
    """

    def __init__(self, store: Store, cluster: str, options: Options, tell: Callable[[str], None]) -> None:
        self.site: Site | None = None
        self._store, self._cluster, self._options, self._tell = store, cluster, options, tell
        self._notebook = options.definition == "notebook"
        self.duration = "span" if self._notebook else options.duration or _known_duration(store, cluster)
        self._values = {
            "cluster": cluster,
            "duration": self.duration,
            "whole_minutes": self._notebook,
            "by": options.by,
            "idle_below": options.idle_below,
        }
        self._made: set[str] = set()
        self._instead = {"waits": "waits_notebook"} if self._notebook else {}
        if options.brief:
            self._instead["job_use"] = "job_use_none"

    def need(self, names: Iterable[str]) -> None:
        """Make tables, named without ``base_``, unless they are made already."""
        for name in names:
            if name not in self._made:
                self._make(name)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of ``queries/base/<name>.sql``, with the tables made that it needs."""
        return self.ask(query.base_sql(name))

    def ask(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a statement of ours, with the tables made that it needs."""
        self.need(query.uses(sql, "base"))
        return self._store.frame(sql, self.chosen(sql)).to_dicts()

    def _make(self, name: str) -> None:
        step = next((step for step in _STEPS if name in step[0]), None)
        if step is not None:
            makes, needs, make = step
            self.need(needs)
            make(self)
            self._made.update(makes)
            return
        file = self._instead.get(name, name)
        owner, _, kind = name.partition("_")
        if owner in _OWNERS and kind in {"figures", "activity"}:
            file = f"owner_{kind}"
        sql = query.base_sql(file)
        self.need(query.uses(sql, "base"))
        # every part of this text is ours: names out of our SQL, SQL from queries/
        made = f"CREATE OR REPLACE TEMP TABLE base_{name} AS SELECT * FROM ({sql})"  # noqa: S608
        self._store.execute(made, self.chosen(sql, owner=owner))
        self._made.add(name)

    def chosen(self, sql: str, **more: object) -> dict[str, Any]:
        """The values of the parameters of a statement, among them `more`."""
        values = self._values | more
        return {key: values[key] for key in parameters(sql)}

    def _ends(self) -> None:
        for name, sql in (("source_ends", SOURCE_ENDS), ("last_samples", LAST_SAMPLES)):
            self._store.execute(f"CREATE OR REPLACE TEMP TABLE base_{name} AS {sql}", {"cluster": self._cluster})

    def _reasons(self) -> None:
        import polars as pl

        self._store.keep("base_reasons", pl.read_csv(query.reasons()))

    def _delays(self) -> None:
        from gpuctl.analyze import delay_table

        self._tell("explaining waits")
        options = self._options
        if options.quotas:
            queues = self._store.frame("SELECT queue FROM base_queues UNION SELECT queue FROM base_jobs")
            check_queues(options.quotas, queues["queue"].to_list())
        self.site = delay_table.build(
            self._store, quotas=options.quotas, racks=options.racks, borrow_below=options.borrow_below
        )

    def _fragmentation(self) -> None:
        from gpuctl.analyze import fragmentation

        self._tell("placing waiting gangs")
        fragmentation.build(self._store, self._options.by)

    def _failures(self) -> None:
        from gpuctl.analyze import failure_table
        from gpuctl.joblogs.table import load as load_signatures

        self._tell("classifying failures")
        failure_table.build(self._store, self._cluster, load_signatures(self._options.signatures))

    def _machines(self) -> None:
        from gpuctl.analyze import bad_machines

        self._tell("testing machines")
        bad_machines.build(self._store)


_STEPS: tuple[tuple[tuple[str, ...], tuple[str, ...], Callable[[Bases], None]], ...] = (
    (("source_ends", "last_samples"), (), Bases._ends),
    (("reasons",), (), Bases._reasons),
    (DELAYS, _DELAYS_NEED, Bases._delays),
    (("fragmentation",), _FRAGMENTATION_NEEDS, Bases._fragmentation),
    (_FAILURES, ("attempts", "jobs", "machine_events", "placements", "reasons"), Bases._failures),
    (_MACHINES, ("attempts", "placements", "failed", "failures"), Bases._machines),
)


def _known_duration(store: Store, cluster: str) -> str:
    spans = store.value("SELECT count(run_span_s) FROM jobs WHERE cluster = $cluster", {"cluster": cluster})
    sums = store.value("SELECT count(run_sum_s) FROM jobs WHERE cluster = $cluster", {"cluster": cluster})
    return "sum" if sums and not spans else "span"
