"""Makes ``base_delays`` and ``base_quotas``: converts rows to arrays, splits the delays, and converts back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.analyze import cause_table, delay_ranges, delay_rows, delays, doubts, gpu_limits, occupancy, scheduler_rules
from gpuctl.analyze.cause_table import gangs_of
from gpuctl.analyze.delay_rows import numbered
from gpuctl.analyze.racks import guess_layouts, infer_racks, layouts_of_known_racks
from gpuctl.core.causes import CAUSES
from gpuctl.core.notes import listed, literal, note, together

if TYPE_CHECKING:
    from gpuctl.core.notes import Kind, Note
    from gpuctl.store.database import Store


_TYPES = (
    "CREATE OR REPLACE TEMP TABLE delay_types AS "
    "WITH types AS (SELECT count(DISTINCT gpu_type) AS types FROM base_machines), "
    "stood AS (SELECT number, any_value(m.gpu_type) AS gpu_type "
    "FROM base_placements JOIN base_machines AS m USING (machine) "
    "GROUP BY number HAVING count(DISTINCT m.gpu_type) = 1 AND count(m.gpu_type) = count(*)) "
    "SELECT number, CASE WHEN gpu_type_request = 'unknown' THEN coalesce(a.gpu_type, s.gpu_type) END AS gpu_type, "
    "gpu_type_request = 'unknown' AS is_open "
    "FROM base_attempts AS a LEFT JOIN stood AS s USING (number) CROSS JOIN types "
    "WHERE types > 1 AND gpu_type_request IS NOT NULL"
)
"""Of attempts that asked for no type, or may not have: null, or the type of the nodes that they may be bound to."""


def build_requested_types(store: Store) -> None:
    """Create ``delay_types``, which is empty if nodes are of one type."""
    store.execute(_TYPES)


def requested_type_warnings(store: Store) -> list[Note]:
    """Return caveats on waits whose GPU type is unknown."""
    waits = store.value(
        "SELECT count(*) FROM delay_types JOIN base_attempts USING (number) WHERE is_open AND wait_s > 0"
    )
    if not waits:
        return []
    return [
        note(
            "the logs do not state which GPU type {waits:,} waiting attempt{waits||s} requested, so each may have "
            "waited for the type that it got or for any:"
            " export sacct's columns ReqTRES and Constraints, "
            "and name the types in AccountingStorageTRES",
            waits=int(waits),
        )
    ]


GUESSED = "inferred from shared gangs"
A_PASS_S = 60.0
"""Waits shorter than this on average are a scheduler's way from pass to pass, and no lack of knowledge."""
_NAMED = 5
_TYPE, _IS_OPEN = "CASE WHEN t.number IS NULL THEN a.gpu_type ELSE t.gpu_type END", "coalesce(t.is_open, false)"
_ATTEMPTS = (
    "SELECT number, q.code, pool, gpus, start_c, held_from_c, held_until_c, eligible_c, wait_s, priority, "  # noqa: S608 - it is ours
    "by_container, servers "
    "FROM base_attempts AS a JOIN delay_queues AS q USING (queue) LEFT JOIN delay_types AS t USING (number) "
    f"LEFT JOIN delay_pools AS p ON p.code = q.code AND p.gpu_type IS NOT DISTINCT FROM {_TYPE} "
    f"AND p.is_open = {_IS_OPEN} "
    "WHERE start_ts IS NOT NULL AND gpus IS NOT NULL ORDER BY number"
)
"""Numbers alone: of a million attempts, each column of names takes as much memory as all that is made of them."""
_ASKING = (
    f"SELECT queue, code, {_TYPE} AS gpu_type, {_IS_OPEN} AS is_open "  # noqa: S608
    "FROM base_attempts AS a JOIN delay_queues USING (queue) LEFT JOIN delay_types AS t USING (number) "
    "WHERE start_ts IS NOT NULL AND gpus IS NOT NULL AND wait_s IS NOT NULL GROUP BY ALL ORDER BY min(a.number)"
)
_UNDER_LIMITS = (
    'SELECT job, "user", queue, gpus, gpu_type, held_from_c, held_until_c, wait_s '
    "FROM base_attempts WHERE start_ts IS NOT NULL AND gpus IS NOT NULL ORDER BY number"
)
_PLACEMENTS = (
    "SELECT number, code, p.gpus, held_from_c, held_until_c, by_container "
    "FROM base_placements AS p JOIN delay_machines USING (machine)"
)
_ON_MACHINES = (
    "SELECT h.gpus, held_from_c, held_until_c, code FROM base_holdings AS h JOIN delay_machines USING (machine)"
)
_IN_QUEUES = (
    "SELECT held_from_c, held_until_c, gpus, q.code FROM base_holdings AS h JOIN delay_queues AS q USING (queue)"
)
"""Of attempts whose containers came and went, what held GPUs is each container, in its own time."""
_USED = (
    "WITH used AS (SELECT queue, machine, count(*) AS starts FROM base_placements JOIN base_attempts USING (number) "
    "GROUP BY queue, machine), every AS (SELECT machine, sum(starts) AS all_starts FROM used GROUP BY machine) "
    "SELECT queue, sum(starts) / (SELECT sum(starts) FROM used) AS share, "
    "(SELECT sum(starts) FROM used) - sum(all_starts) AS elsewhere "
    "FROM used JOIN every USING (machine) GROUP BY queue ORDER BY queue"
)
"""Of each queue: its share of all starts on nodes, and the starts on nodes that it never used."""
_SHARED = (
    "SELECT number, machines FROM base_gang_machines JOIN base_attempts USING (job, attempt) "
    "WHERE len(machines) > 1 ORDER BY number"
)
_ORDER = frozenset({"overtook_gpus", "overtook_harmless", "behind_s"})


@dataclass(frozen=True)
class Site:
    """The origin of quotas, racks and the rule of borrowing, in words, and caveats on them."""

    quota_note: Note
    rack_note: Note
    borrow_note: Note
    warnings: tuple[Note, ...]


def build(
    store: Store,
    *,
    quotas: dict[str, float],
    racks: dict[str, str],
    borrow_below: float | None,
    wanted: frozenset[str] | None = None,
) -> Site:
    """Create ``base_delays``, ``base_quotas`` and the tables of `cause_table` from the other base tables.

    Args:
        store: an open store with base_jobs, base_attempts, base_placements and base_machines.
        quotas: GPUs by queue, from the user; quotas of other queues are inferred.
        racks: rack by node, from the user; if empty, racks are those of the logs, else inferred.
        borrow_below: see `delays.Cluster`; None: inferred, or 0 if quotas are configured.
        wanted: the columns of ``base_delays`` to make, and other words; None: all.
    """
    machines = store.frame(
        "SELECT * REPLACE (coalesce(gpus, 0) AS gpus, coalesce(gpus_most, 0) AS gpus_most) FROM base_machines "
        "ORDER BY machine"
    )
    events = store.frame("FROM base_machine_events")
    queues: list[str] = store.frame("SELECT DISTINCT queue FROM base_jobs ORDER BY queue")["queue"].to_list()
    shared = store.frame(_SHARED)
    own = store.frame("SELECT queue, machine, inferred FROM base_queue_machines")
    configured = _configured(store)
    if borrow_below is None and not (own.is_empty() and configured.is_empty()):
        borrow_below = 0.0
    machines, rack_source = _known_racks(machines, racks)
    if not rack_source and not own.is_empty():
        machines, rack_source = _shared_gangs(machines, shared), GUESSED
    members, perhaps = _pools(store, queues, machines, own)
    holdings, waited = _attempts(store)
    pools, stood = _nodes(store, machines, events, members + perhaps)
    pools, wider = pools[: len(members)], pools[len(members) :]
    largest = pl.Series([max(1, int(pool.gpus.max(initial=0))) for pool in pools])
    waited = waited.with_columns(largest=largest.gather(waited["pool"]))
    waits = _waits(waited)
    waited = waited.select("number", "gpus", "largest", "servers", "start_c", "wait_s")
    limits = _caps(store)
    known = _quotas(queues, given=quotas, configured=configured, inferred=None)
    found_rules = None
    # queues with their own nodes (partitions) are bounded by those, not by a quota that could be inferred
    if own.is_empty() and waits.start.size and pools[0].gpus.any():
        gangs = gangs_of(waited, waits, shared, machines)
        layouts = (layouts_of_known_racks if rack_source else guess_layouts)(pools[0], gangs)
        given = scheduler_rules.GivenRules(known["limit_gpus"].to_numpy(), borrow_below)
        found_rules = scheduler_rules.find(waits, holdings, layouts, given)
        pools, borrow_below = (found_rules.layout.nodes,), found_rules.borrow_below
        wider = pools
        if not rack_source:
            machines, rack_source = _named(machines, found_rules.layout.nodes.rack), GUESSED
    table = _quotas(
        queues, given=quotas, configured=configured, inferred=None if found_rules is None else found_rules.limits
    )
    cluster = delays.Cluster(holdings, pools, _limits(table), borrow_below or 0.0, limits)
    states = delays.states(waits, cluster)
    found = delays.split(waits, cluster, states, order=wanted is None or bool(_ORDER & wanted))
    shown = _bounded(table, found_rules)
    guessed = found_rules is not None and bool(known["limit_gpus"].null_count())
    warnings = [
        *_quota_warnings(shown, strangers=_strangers(store, quotas, queues)),
        *_unused_racks_warning(racks, machines),
        *(cause_table.warnings(found_rules) if found_rules and guessed else _unexplained_warning(found)),
        *requested_type_warnings(store),
        *_limits_warning(store, partitions=not own.is_empty()),
        *_rack_warnings(machines, rack_source),
    ]
    store.keep("base_racks", machines.select("machine", "rack"))
    store.keep("base_quotas", shown)
    _sampled(store, waited, waits, cluster, states)
    numbers, most = waited["number"].to_numpy(), _most(wider, machines, perhaps)
    ranges = delay_ranges.find(
        store, numbers, waits, cluster, states, found, found_rules, table, most, racks_guessed=rack_source == GUESSED
    )
    warnings += ranges.warnings
    cause_table.build(store, ranges, found_rules)
    borrowing = _borrow_note(cluster, found_rules)
    # for a million attempts, the holdings are as large as everything made below
    del holdings, cluster, states, found_rules
    pools = tuple(occupancy.emptied(pool) for pool in pools)
    delay_rows.keep(store, delay_rows.make_rows(waited, waits, found, ranges, pools, stood, machines, wanted), wanted)
    return Site(_quota_note(shown), _rack_note(machines, rack_source), borrowing, tuple(warnings))


def _strangers(store: Store, quotas: dict[str, float], queues: list[str]) -> list[str]:
    """Return queues with a user's quota that neither the configuration nor the jobs of the trace name."""
    return sorted(set(quotas) - set(store.frame("SELECT queue FROM base_queues")["queue"]) - set(queues))


def _attempts(store: Store) -> tuple[occupancy.Holdings, pl.DataFrame]:
    """Return holdings of GPUs, and the attempts whose wait is known; `_pools` has numbered queues and pools."""
    # in one chunk, each array is the column itself and not a copy
    rows = store.frame(_ATTEMPTS).rechunk()
    parts = store.frame(_IN_QUEUES)
    held = rows if parts.is_empty() else pl.concat([rows.filter(~pl.col("by_container")).select(parts.columns), parts])
    columns = (held[name].to_numpy() for name in ("held_from_c", "held_until_c", "gpus", "code"))
    waited = rows.drop("held_until_c", "by_container")
    if rows["wait_s"].null_count():
        waited = waited.filter(pl.col("wait_s").is_not_null())
    return occupancy.Holdings(*columns), waited


def _nodes(
    store: Store, machines: pl.DataFrame, events: pl.DataFrame, members: list[np.ndarray]
) -> tuple[tuple[occupancy.Nodes, ...], pl.DataFrame]:
    """Return the nodes of each pool, and the attempt's number and node of every placement."""
    store.keep("delay_machines", numbered("machine", machines["machine"].to_list()))
    placements = store.frame(_PLACEMENTS).rechunk()
    stood = placements.select("number", pl.col("code").cast(pl.Int32))
    parts = store.frame(_ON_MACHINES)
    if parts.height:
        whole = placements.filter(~pl.col("by_container")).select(parts.columns)
        placements = pl.concat([whole, parts])
    return _subsets(_numbered_nodes(machines, placements, events), members), stood


def _pools(
    store: Store, queues: list[str], machines: pl.DataFrame, own: pl.DataFrame
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Create ``delay_queues`` and ``delay_pools``: numbers of queues and pools; the nodes of each: `pools_of`.

    Also returns the nodes that each pool may have: all, if its queue's are inferred and it may have missed the others
    by chance; those of all types, if no source states the requested type.
    """
    build_requested_types(store)
    store.keep("delay_queues", numbered("queue", queues))
    asking = store.frame(_ASKING)
    numbers, members = pools_of(asking, machines, own)
    store.keep("delay_pools", numbers.select("code", "gpu_type", "is_open", "pool"))
    used = store.frame(_USED) if own["inferred"].any() else pl.DataFrame(schema={"queue": pl.String})
    open_ = [queue for queue, share, elsewhere in used.rows() if doubts.by_chance(float(share), float(elsewhere))]
    if not open_ and not asking["is_open"].any():
        return members, members
    every = pl.DataFrame({"queue": open_}).join(machines.select("machine"), how="cross")
    closed = own.filter(~pl.col("queue").is_in(open_)).select("queue", "machine")
    return members, pools_of(asking, machines, pl.concat([closed, every]), wide=True)[1]


def _most(
    pools: tuple[occupancy.Nodes, ...], machines: pl.DataFrame, members: list[np.ndarray]
) -> tuple[occupancy.Nodes, ...]:
    """Return each pool with the most GPUs that its nodes may have; the same object if these are certain."""
    sizes = machines["gpus_most"].to_numpy().astype(np.int64)
    most = {id(pool): sizes[some] for pool, some in zip(pools, members, strict=True)}
    made = {
        id(pool): doubts.larger(pool, most[id(pool)]) if (most[id(pool)] > pool.gpus).any() else pool for pool in pools
    }
    return tuple(made[id(pool)] for pool in pools)


def _caps(store: Store) -> gpu_limits.Caps:
    """Return the limits on each wait; names are only read if there are limits."""
    limits = store.frame("FROM base_gpu_limits")
    if limits.is_empty():
        return gpu_limits.Caps()
    held = store.frame(_UNDER_LIMITS)
    return gpu_limits.caps(held.filter(pl.col("wait_s").is_not_null()), held, limits, store.frame("FROM base_owners"))


def _sampled(
    store: Store,
    waited: pl.DataFrame,
    waits: delays.Waits,
    cluster: delays.Cluster,
    states: tuple[delays.State, ...],
) -> None:
    """Create ``base_sampled_causes``: the replayed cause at each instant with a sampled reason."""
    samples = store.frame(
        "SELECT job, attempt, number, at_c, reason FROM base_queue_samples JOIN base_attempts USING (job, attempt) "
        "WHERE eligible"
    )
    wait = np.searchsorted(waited["number"].to_numpy(), samples["number"].to_numpy()).astype(np.int64)
    found, behind = delays.causes_at(waits, cluster, states, wait, samples["at_c"].to_numpy())
    causes = pl.Series("cause", CAUSES).gather(found.tolist())
    rows = samples.select("job", "attempt", "at_c", "reason").with_columns(causes, pl.Series("behind", behind))
    store.keep("base_sampled_causes", rows)


def _configured(store: Store) -> pl.DataFrame:
    return store.frame("SELECT queue, quota_gpus, limit_gpus FROM base_queues WHERE quota_gpus IS NOT NULL")


def _quotas(
    queues: list[str], *, given: dict[str, float], configured: pl.DataFrame, inferred: np.ndarray | None
) -> pl.DataFrame:
    """Return each queue's quota, its origin, and the most GPUs that the queue may hold.

    The latter is the quota, unless the queue may exceed its guarantee, as in YARN up to the maximum.
    """
    known = {queue: (quota, limit) for queue, quota, limit in configured.iter_rows()}
    rows: list[tuple[str, float | None, str | None, float | None]] = []
    guesses = [np.inf] * len(queues) if inferred is None else inferred.tolist()
    for queue, guess in zip(queues, guesses, strict=True):
        if queue in given:
            rows.append((queue, given[queue], "given", given[queue]))
        elif queue in known:
            quota, limit = known[queue]
            rows.append((queue, quota, "configured", quota if limit is None else limit))
        elif 0 < guess < np.inf:
            rows.append((queue, guess, "inferred", guess))
        else:
            rows.append((queue, None, None, None))
    schema = {"queue": pl.String, "quota_gpus": pl.Float64, "quota_source": pl.String, "limit_gpus": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _bounded(table: pl.DataFrame, found: scheduler_rules.Rules | None) -> pl.DataFrame:
    """Return the quotas, without arbitrary inferred ones: those that bound no start, or do not explain the log."""
    if found is None:
        return table
    open_ = (pl.col("quota_source") == "inferred") & pl.Series(np.isinf(found.may_be.most))
    return table.with_columns(
        pl.when(~open_.fill_null(value=False)).then(pl.col(name)).alias(name)
        for name in ("quota_gpus", "quota_source", "limit_gpus")
    )


def _limits(table: pl.DataFrame) -> np.ndarray:
    """Return the most GPUs that each queue may hold; inf if it has no limit of its own."""
    return table["limit_gpus"].fill_null(np.inf).to_numpy()


def _quota_note(table: pl.DataFrame) -> Note:
    counts = table["quota_source"].drop_nulls().value_counts(sort=True).rows()
    parts = [
        note("{source} for {count:,} queue{count||s}", source=literal(source), count=count) for source, count in counts
    ]
    return together(", ", parts) if parts else note("none known")


def _quota_warnings(table: pl.DataFrame, *, strangers: list[str]) -> list[Note]:
    warnings = []
    inferred = (table["quota_source"] == "inferred").sum()
    if inferred:
        warnings.append(
            note(
                "the quotas of {inferred:,} queue{inferred||s} are inferred, to best explain waits and "
                "starts: a guess (docs/reference/analyses/delays.md). Provide them with --quotas",
                inferred=int(inferred),
            )
        )
    if strangers:
        warnings.append(
            note("--quotas names queues that are not in the trace: {queues}", queues=_some("queue", strangers))
        )
    return warnings


def _some(kind: Kind, names: list[str]) -> Note:
    more = len(names) - _NAMED
    some = listed(kind, names, _NAMED)
    return note("{some} and {more} more", some=some, more=more) if more > 0 else some


def _unexplained_warning(found: delays.Delays) -> list[Note]:
    """Warn how much waiting is left to unknown limits or to the scheduler, if no quota is inferred."""
    left = _unexplained(found)
    each = float(found.seconds[:, CAUSES.index("scheduler")].mean()) if len(found.seconds) else 0.0
    if left <= cause_table.UNEXPLAINED or each < A_PASS_S:
        return []
    return [
        note(
            "no known limit, capacity or fragmentation explains {left:.0%} of the waiting time: limits may be "
            "missing from the store, or the scheduler was slow. Give quotas with --quotas; docs/how-to/sources.md "
            "lists other sources of limits",
            left=left,
        )
    ]


def _limits_warning(store: Store, *, partitions: bool) -> list[Note]:
    """Warn how to load limits, if limits may have made attempts wait and none is loaded."""
    [(named, reasons, waits, known)] = store.frame(
        "SELECT count(*) FILTER (r.category = 'quota'), count(a.source_reason), count(*), "
        "(SELECT count(*) FROM base_gpu_limits) FROM base_attempts AS a "
        "LEFT JOIN base_reasons AS r ON r.reason = split_part(a.source_reason, ',', 1) WHERE a.wait_s > 0"
    ).rows()
    if known or not (named or (partitions and waits and not reasons)):
        return []
    if not named:
        return [
            note(
                "the logs have no reasons for waits, and no limits are loaded, so {waits:,} wait{waits||s} may have "
                "been for a limit: save sacctmgr -P show assoc > sacctmgr_assoc.txt and sacctmgr -P show qos > "
                "sacctmgr_qos.txt next to the logs, and export sacct's column Reason if it is missing",
                waits=waits,
            )
        ]
    return [
        note(
            "{named:,} attempt{named||s} waited for a limit according to Slurm, but no limits are loaded: save "
            "sacctmgr -P show assoc > sacctmgr_assoc.txt and sacctmgr -P show qos > sacctmgr_qos.txt next to the "
            "logs",
            named=named,
        )
    ]


def _unexplained(found: delays.Delays) -> float:
    return float(found.seconds[:, CAUSES.index("scheduler")].sum() / max(1.0, found.seconds.sum()))


def _known_racks(machines: pl.DataFrame, given: dict[str, str]) -> tuple[pl.DataFrame, str]:
    """Return the nodes with known racks, and their origin; '' if there are none."""
    if given:
        racks = pl.Series("rack", [given.get(name) for name in machines["machine"]], pl.String)
        return machines.with_columns(racks), "given"
    return machines, "from the logs" if machines["rack"].null_count() < machines.height else ""


def _shared_gangs(machines: pl.DataFrame, shared: pl.DataFrame) -> pl.DataFrame:
    known = infer_racks(shared["machines"].to_list())
    return machines.with_columns(pl.Series("rack", [known.get(name) for name in machines["machine"]], pl.String))


def _named(machines: pl.DataFrame, racks: np.ndarray) -> pl.DataFrame:
    """Return the nodes with inferred racks, the largest first; a node in none of them has none."""
    sizes = np.bincount(racks[racks >= 0])
    place = np.empty(sizes.size, np.int64)
    place[np.argsort(-sizes, kind="stable")] = np.arange(1, sizes.size + 1)
    names = [f"guess-{place[rack]}" if rack >= 0 else None for rack in racks.tolist()]
    return machines.with_columns(pl.Series("rack", names, pl.String))


def _rack_note(machines: pl.DataFrame, source: str) -> Note:
    racks = machines["rack"].drop_nulls()
    return note(
        "{racks} {source}, for {some:,} of {machines:,} node{machines||s}",
        racks=racks.n_unique(),
        source=literal(source),
        some=racks.len(),
        machines=machines.height,
    )


def _unused_racks_warning(racks: dict[str, str], machines: pl.DataFrame) -> list[Note]:
    lost = sorted(set(racks) - set(machines["machine"]))
    if not lost:
        return []
    return [note("--racks names nodes that are not in the trace: {machines}", machines=_some("machine", lost))]


def _rack_warnings(machines: pl.DataFrame, source: str) -> list[Note]:
    count = machines["rack"].drop_nulls().n_unique()
    if source != GUESSED or not count:
        return []
    if count == 1:
        return [
            note(
                "the rack is a guess (nodes that share gangs); fragmentation and locality depend on it. Provide racks "
                "with --racks"
            )
        ]
    return [
        note(
            "the {count:,} rack{count||s} {count|is|are} guesses (nodes that share gangs); fragmentation and "
            "locality depend on them. Provide them with --racks",
            count=count,
        )
    ]


def _borrow_note(cluster: delays.Cluster, found: scheduler_rules.Rules | None) -> Note:
    rule = (
        note("allowed while at most {share:.0%} of the GPUs are busy", share=cluster.borrow_below)
        if cluster.borrow_below
        else note("a queue may never exceed its quota")
    )
    inferred = found is not None and found.considered[0].busy.size > 1
    return note("{rule} (inferred)", rule=rule) if inferred else rule


def _waits(waited: pl.DataFrame) -> delays.Waits:
    queued = waited["start_c"].to_numpy() - waited["wait_s"].to_numpy()
    # with its GPUs, it waits for nodes that boot, and no longer for other jobs
    start = np.maximum(queued, waited["held_from_c"].to_numpy())
    # a held or dependent job does not wait for GPUs; some logs record that after its end
    eligible = np.clip(waited["eligible_c"].fill_null(0).to_numpy(), queued, start)
    gpus = np.ceil(waited["gpus"].to_numpy()).astype(np.int64)
    priority = waited["priority"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return delays.Waits(eligible, start, gpus, waited["code"].to_numpy(), waited["pool"].to_numpy(), priority)


def nodes_of(machines: pl.DataFrame, placements: pl.DataFrame, events: pl.DataFrame) -> occupancy.Nodes:
    """Return the cluster's nodes; a node that is down or drained counts as held."""
    numbers = numbered("machine", machines["machine"].to_list())
    held = placements.select("machine", "gpus", "held_from_c", "held_until_c").join(numbers, on="machine")
    return _numbered_nodes(machines, held, events)


def _numbered_nodes(machines: pl.DataFrame, held: pl.DataFrame, events: pl.DataFrame) -> occupancy.Nodes:
    """Return the same for placements whose column ``code`` is the index of their node in `machines`."""
    numbers = numbered("machine", machines["machine"].to_list())
    racks = numbered("rack", sorted(machines["rack"].drop_nulls().unique().to_list()))
    held = held.select("gpus", "held_from_c", "held_until_c", "code")
    down = events.select("machine", "from_c", "to_c").join(machines.select("machine", "gpus"), on="machine")
    down = down.select("machine", pl.col("gpus").cast(pl.Float64), held_from_c="from_c", held_until_c="to_c")
    down = down.join(numbers, on="machine").select(held.columns)
    held = pl.concat([held, down]) if down.height else held
    return occupancy.Nodes(
        gpus=machines["gpus"].to_numpy().astype(np.int64),
        rack=machines.join(racks, on="rack", how="left", maintain_order="left")["code"].fill_null(-1).to_numpy(),
        start=held["held_from_c"].to_numpy(),
        end=held["held_until_c"].to_numpy(),
        node=held["code"].to_numpy(),
        held=np.ceil(held["gpus"].to_numpy()).astype(np.int64),
    )


def pools_of(
    asking: pl.DataFrame, machines: pl.DataFrame, own: pl.DataFrame, *, wide: bool = False
) -> tuple[pl.DataFrame, list[np.ndarray]]:
    """Number the pools of nodes that gangs may use: all nodes, or those of their queue and GPU type.

    Args:
        asking: one row per gang, with columns queue, gpu_type, and is_open: whether it may have requested any type.
        machines: ``base_machines``, one row per node.
        own: queue and node, one row per node that a queue may use; empty: every queue may use all.
        wide: whether open gangs may use all types.

    Returns:
        `asking` with a column ``pool``; the nodes of each pool.
    """
    everything = np.ones(machines.height, bool)
    if own.is_empty():
        return asking.with_columns(pool=pl.lit(0, pl.Int64)), [everything]
    requests = asking.select("queue", "gpu_type", "is_open").unique(maintain_order=True).with_row_index("pool")
    pools = []
    for _, queue, kind, is_open in requests.iter_rows():
        members = machines["machine"].is_in(own.filter(pl.col("queue") == queue)["machine"].implode()).to_numpy()
        members = members if members.any() else everything
        typed = members & machines["gpu_type"].eq_missing(pl.Series([kind], dtype=pl.String)).to_numpy()
        pools.append(typed if kind is not None and typed.any() and not (wide and is_open) else members)
    requests = requests.with_columns(pl.col("pool").cast(pl.Int64))
    return asking.join(requests, on=["queue", "gpu_type", "is_open"], nulls_equal=True, maintain_order="left"), pools


def _subsets(nodes: occupancy.Nodes, members: list[np.ndarray]) -> tuple[occupancy.Nodes, ...]:
    """Return the nodes of each pool; pools with the same nodes share one object."""
    distinct = {each.tobytes(): each for each in members}
    made = {key: occupancy.subset(nodes, each) for key, each in distinct.items()}
    return tuple(made[each.tobytes()] for each in members)


def queues_of(machines: pl.DataFrame, own: pl.DataFrame) -> list[np.ndarray]:
    """Return the nodes of each queue that has its own nodes; queues with the same ones once."""
    found = {}
    for (_,), rows in own.group_by("queue", maintain_order=True):
        members = machines["machine"].is_in(rows["machine"].implode()).to_numpy()
        found[members.tobytes()] = members
    return list(found.values())
