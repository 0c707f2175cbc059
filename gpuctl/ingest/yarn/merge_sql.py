"""The SQL that makes jobs, attempts, containers and placements of ``yarn_facts``.

Every text here is made of the names below; text of a log or a user is passed as parameters or read from tables.
Where several sources describe the same field, the one whose kind of place ranks first counts, then the earliest time or
the first text by alphabet: so nothing depends on the order in which the sources were loaded.
"""

from __future__ import annotations

from gpuctl.ingest.yarn import events
from gpuctl.ingest.yarn.facts import APP_STATES, ATTEMPT_STATES

STALE = """
    CREATE OR REPLACE TEMP TABLE yarn_stale AS
    WITH now AS (
        SELECT job, list_sort(list(DISTINCT source)) AS sources FROM yarn_facts WHERE cluster = $cluster GROUP BY job
    ),
    built AS (SELECT job, sources, context FROM yarn_built WHERE cluster = $cluster)
    SELECT coalesce(now.job, built.job) AS job, now.sources
    FROM now FULL JOIN built USING (job)
    WHERE now.sources IS DISTINCT FROM built.sources OR built.context IS DISTINCT FROM $context
"""
"""Jobs whose rows are not made of what there is now; ``sources`` is NULL if nothing is left of one."""

_TIMES = ("submit_ts", "launch_ts", "allocated_ts", "running_ts", "end_ts")


MANAGER = f"job = '{events.MANAGER}'"


def _rank(*origins: str) -> str:
    return f"list_position([{', '.join(repr(o) for o in origins)}], origin)"


GIVEN_BACK_WITHIN_S = 10
"""A master asks for its containers every second or so, and starts them within a few."""
GPUS_LISTED = """
    SELECT EXISTS (FROM yarn_facts WHERE cluster = $cluster AND job <> 'ResourceManager'
                   AND (gpus > 0 OR gpu_seconds IS NOT NULL))
           OR EXISTS (FROM machines WHERE cluster = $cluster AND gpus_labelled > 0) AS listed
"""
"""Whether anything states that YARN counts GPUs in this cluster; totals of all resources, which list every type, do.

Amounts of single containers list GPUs only if they are not 0.
"""
FORGET_ZEROS = "UPDATE yarn_seen SET gpus = NULL WHERE gpus = 0"
FORGET_MACHINE_ZEROS = "UPDATE machines SET gpus_labelled = NULL WHERE cluster = $cluster AND gpus_labelled = 0"
"""If nothing states so (releases before 3.1, GPUs handed out by other means), no GPUs in an amount mean that they are
not known."""
APP_ENDED = "('FINISHED', 'FAILED', 'KILLED')"
_APP_RANK = _rank("summary", "rest", "ats", "epoch", "state", "audit", "nm", "spark", "history")
_CONTAINER_RANK = _rank("state", "audit", "rest", "ats", "epoch", "summary", "nm", "spark", "history")
_EXIT_RANK = _rank("ats", "rest", "nm", "state", "audit", "epoch", "summary", "spark", "history")


def facts(*, zone: bool, offsets: int) -> str:
    """The facts of stale jobs, and those on the ResourceManager, with their times in UTC, as a temporary table.

    Args:
        zone: whether stamps are read in ``$zone``.
        offsets: else, how many offsets ``$stamps`` and ``$ahead`` hold.
    """
    if zone:
        local = "timezone($zone, {0})"
    elif offsets == 1:
        local = "timezone('UTC', {0} - to_seconds($ahead[1]))"
    else:
        # the number of those that have begun; before the first one, the first one holds
        nth = "greatest(1, len(list_filter($stamps::TIMESTAMP[], lambda s: s <= {0})))"
        local = f"timezone('UTC', {{0}} - to_seconds($ahead[{nth}]))"
    times = ", ".join(
        f"""CASE WHEN "local" THEN {local.format(t)} ELSE timezone('UTC', {t}) END AS {t}""" for t in _TIMES
    )
    return f"""
        CREATE OR REPLACE TEMP TABLE yarn_seen AS
        SELECT f.* REPLACE ({times}), {_APP_RANK} AS app_rank, {_CONTAINER_RANK} AS rank, {_EXIT_RANK} AS exit_rank
        FROM yarn_facts AS f
        WHERE cluster = $cluster AND job IN (SELECT job FROM yarn_stale UNION ALL SELECT '{events.MANAGER}')
    """  # noqa: S608


def _pick(column: str, rank: str, *, keep: str = "") -> str:
    """The value of a column from the best place, and where it came from: what `_picked` takes apart."""
    return f"min({{'r': {rank}, 'v': {column}, 's': source}}) FILTER ({column} IS NOT NULL{keep}) AS {column}"


def _picked(*columns: str) -> str:
    """Of each `_pick` its value, and where it came from as ``column_from``."""
    return ", ".join(f"{one}.v AS {one}, {one}.s AS {one.strip(chr(34))}_from" for one in columns)


_SOURCES, _TIMES_END, _NUMBERS_END = 2**31, 2**53, "1e12"


def _best(column: str, rank: str) -> str:
    """`_pick` for the many containers, a lot sooner: of times (``…_ts``) and numbers; without where it came from."""
    key = f"{rank} * {_NUMBERS_END} + {column}"
    if column.endswith("_ts"):
        key = f"{rank}::BIGINT * {_TIMES_END} + epoch_us({column})"
    return f"arg_min({column}, {key}) FILTER ({column} IS NOT NULL) AS {column}"


def _best_text(column: str, rank: str) -> str:
    return f"substring(min(chr(64 + {rank}) || {column}) FILTER ({column} IS NOT NULL), 2) AS {column}"


def _from(column: str) -> str:
    """The first source of the best rank that has a column."""
    return f"min(rank::BIGINT * {_SOURCES} + source) FILTER ({column} IS NOT NULL) % {_SOURCES} AS {column}_from"


def _state(order: tuple[str, ...]) -> str:
    """The latest state of any origin."""
    states = f"[{', '.join(repr(s) for s in order)}]"
    one = f"{{'r': -list_position({states}, state), 'o': app_rank, 'v': state, 's': source}}"
    return f"min({one}) FILTER (state IS NOT NULL) AS state"


ATTEMPT_FACTS = f"""
    CREATE OR REPLACE TEMP TABLE yarn_attempt_facts AS
    WITH best AS (
        SELECT job, attempt, {_pick("allocated_ts", "rank")}, {_pick("launch_ts", "rank")}, {_pick("end_ts", "rank")},
               {_pick("exit_code", "exit_rank")}, {_pick("reason", "exit_rank")}, {_state(ATTEMPT_STATES)}
        FROM yarn_seen WHERE attempt IS NOT NULL AND container IS NULL GROUP BY job, attempt
    )
    SELECT job, attempt, {_picked("allocated_ts", "launch_ts", "end_ts", "exit_code", "reason", "state")} FROM best
"""  # noqa: S608
"""What is reported about attempts as such."""

CONTAINERS = f"""
    CREATE OR REPLACE TEMP TABLE yarn_containers AS
    WITH merged AS (
        SELECT job, attempt, container, coalesce(bool_or(is_master), false) AS named_master,
               CAST(regexp_extract(container, '[0-9]+$') AS BIGINT) AS number,
               coalesce(TRY_CAST(regexp_extract(container, '_e([0-9]+)_', 1) AS BIGINT), 0) AS epoch,
               {_best_text("machine", "rank")}, {_best("gpus", "rank")}, {_best("cpus", "rank")},
               {_best("mem_mb", "rank")}, {_best("allocated_ts", "rank")}, {_best("running_ts", "rank")},
               {_best("end_ts", "rank")}, {_best("exit_code", "exit_rank")}, {_best_text("reason", "exit_rank")},
               {_best_text("state", "rank")}, {_from("machine")}, {_from("gpus")}, {_from("allocated_ts")},
               bool_or(launch_ts IS NOT NULL) AS was_reserved,
               bool_or(origin = 'state' AND allocated_ts IS NOT NULL) AS was_allocated,
               bool_or(origin IN ('state', 'audit', 'nm')
                       AND coalesce(allocated_ts, running_ts) IS NOT NULL) AS was_there,
               coalesce(bool_or(origin = 'ats' AND state = 'RUNNING'), false) AS was_held
        FROM yarn_seen WHERE container IS NOT NULL GROUP BY job, attempt, container
    ),
    attempts AS (
        SELECT j.job, a.attempt, coalesce(j.state IN {APP_ENDED}, false) AS job_over,
               CASE WHEN a.attempt = max(a.attempt) OVER (PARTITION BY j.job)
                    THEN greatest(t.end_ts, CASE WHEN job_over THEN j.end_ts END) ELSE t.end_ts END AS over_ts,
               coalesce(over_ts IS NOT NULL
                        AND (job_over OR a.attempt < max(a.attempt) OVER (PARTITION BY j.job)), false) AS over
        FROM (SELECT DISTINCT job, attempt FROM yarn_seen WHERE attempt IS NOT NULL) AS a
        JOIN yarn_jobs AS j USING (job) LEFT JOIN yarn_attempt_facts AS t USING (job, attempt)
    ),
    lost_track AS (
        SELECT m.container, r.restart_ts
        FROM (SELECT container, allocated_ts FROM merged
              WHERE end_ts IS NULL AND running_ts IS NULL AND was_allocated) AS m
        ASOF JOIN (SELECT DISTINCT submit_ts AS restart_ts FROM yarn_seen WHERE origin = 'manager') AS r
        ON m.allocated_ts < r.restart_ts
    ),
    judged AS (
        SELECT m.*, a.over, a.over_ts, restart_ts, restart_ts IS NOT NULL AS forgotten,
               m.end_ts IS NULL AND running_ts IS NULL AND a.over
               AND NOT (was_there OR was_held OR named_master) AS never_ended,
               coalesce(NOT was_there AND running_ts IS NULL AND m.exit_code = -100
                        AND m.reason = 'Container released by application'
                        AND epoch(m.end_ts) - epoch(m.allocated_ts) < {GIVEN_BACK_WITHIN_S}, false) AS given_back
        FROM merged AS m JOIN attempts AS a USING (job, attempt) LEFT JOIN lost_track USING (container)
        WHERE was_there OR was_held OR running_ts IS NOT NULL OR named_master OR NOT was_reserved
    )
    SELECT * REPLACE (CASE WHEN forgotten THEN restart_ts
                           WHEN end_ts IS NULL AND over AND coalesce(allocated_ts, running_ts) IS NOT NULL
                           THEN greatest(over_ts, allocated_ts, running_ts) ELSE end_ts END AS end_ts),
           forgotten OR (end_ts IS NULL AND over AND coalesce(allocated_ts, running_ts) IS NOT NULL) AS end_inferred,
           named_master OR (number = 1 AND epoch = min(epoch) OVER of_attempt
                           AND NOT bool_or(named_master) OVER of_attempt) AS is_master,
           never_ended OR given_back
           OR coalesce(state IN ('RELEASED', 'EXPIRED') AND running_ts IS NULL, false) AS unused,
           was_held AND end_ts IS NULL AND NOT was_there AS only_held
    FROM judged WINDOW of_attempt AS (PARTITION BY job, attempt)
"""  # noqa: S608
"""Containers, without those that a log knows as reserved and never allocated.

A restarted ResourceManager forgets, without a line, what had been handed out and was not running yet (``forgotten``):
it ends when that one became active (only if transitions are logged, since else what is running is not known). Any
other container without an end ends with its attempt, if that is over (``end_inferred``).

The timeline server alone does not separate what was forgotten from what was only reserved (``never_ended``): it lists
both as begun and never ended. Nor does it state what ran; what a master gave back within seconds (``given_back``) was
more than it needed. All these are containers and no members of a gang (``unused``).

What a ResourceManager lists as held (``only_held``) may be less than the gang that it grew to.
"""

_CONTAINER_STATE = """
    CASE WHEN never_ended OR end_ts IS NULL THEN NULL
         WHEN exit_code = 0 THEN 'completed'
         WHEN exit_code = -100 THEN 'node_fail'
         WHEN exit_code = -102 THEN 'preempted'
         WHEN exit_code IN (-103, -104) THEN 'out_of_memory'
         WHEN exit_code IN (-105, -106, -107, -108) OR state = 'KILLED' THEN 'killed'
         WHEN exit_code IS NOT NULL THEN 'failed' END"""
"""What became of a container, in the words that all sources share; NULL if nothing shows."""

INSERT_CONTAINERS = f"""
    INSERT INTO containers BY NAME
    SELECT $cluster AS cluster, job, attempt, container, machine, gpus, cpus, mem_mb, is_master,
           allocated_ts, running_ts, end_ts, exit_code,
           {_CONTAINER_STATE} AS state, CASE WHEN never_ended THEN 'RESERVED' ELSE state END AS source_state,
           coalesce(reason, CASE WHEN forgotten THEN 'forgotten by a restarted ResourceManager'
                                 WHEN never_ended THEN 'never ended: only reserved, or forgotten by the ResourceManager'
                                 WHEN end_inferred THEN 'end not told: its attempt was over'
                                 WHEN state IN ('RELEASED', 'EXPIRED', 'KILLED') THEN lower(state) END) AS reason,
           list_max(sources) AS source
    FROM yarn_containers JOIN yarn_stale USING (job)
"""  # noqa: S608

GANGS = """
    CREATE OR REPLACE TEMP TABLE yarn_gang_members AS
    WITH classed AS (
        SELECT *, CASE WHEN unused OR allocated_ts IS NULL THEN 0
                       WHEN NOT is_master AND (gpus > 0 OR (gpus IS NULL AND has_gpus)) THEN 4
                       WHEN gpus > 0 THEN 3
                       WHEN NOT is_master THEN 2 ELSE 1 END AS class
        FROM (SELECT *, bool_or(gpus > 0 AND NOT is_master) OVER (PARTITION BY job, attempt) AS has_gpus
              FROM yarn_containers)
    ),
    top AS (SELECT *, max(class) OVER (PARTITION BY job, attempt) AS highest FROM classed),
    ends AS (
        SELECT *, min(end_ts) FILTER (class = highest) OVER (PARTITION BY job, attempt) AS first_end
        FROM top WHERE highest > 0
    )
    SELECT *, class = highest AND (first_end IS NULL OR allocated_ts < first_end OR allocated_ts = end_ts) AS in_gang
    FROM ends
    WHERE in_gang OR (is_master AND gpus > 0)
"""
"""Members of each attempt's initial gang, and its master where that holds GPUs as well.

The gang is of containers with GPUs (or of unknown size) where any but the master has some, else of the master if it has
some, else of all but the master, else the master alone. Members are those allocated before the first of them ends;
containers given back before they ever ran are none.
"""

ATTEMPTS = """
    CREATE OR REPLACE TEMP TABLE yarn_attempts AS
    WITH gangs AS (
        SELECT job, attempt, min(allocated_ts) FILTER (in_gang) AS first_container_ts,
               max(allocated_ts) FILTER (in_gang) AS gang_ts,
               arg_max(allocated_ts_from, allocated_ts) FILTER (in_gang) AS gang_from,
               CASE WHEN bool_and(gpus IS NOT NULL) FILTER (in_gang) THEN sum(gpus) END AS gpus,
               CASE WHEN bool_and(cpus IS NOT NULL) FILTER (in_gang) THEN sum(cpus) FILTER (in_gang) END AS cpus,
               CASE WHEN bool_and(mem_mb IS NOT NULL) FILTER (in_gang) THEN sum(mem_mb) FILTER (in_gang) END AS mem_mb,
               CASE WHEN bool_and(machine IS NOT NULL) FILTER (in_gang)
                    THEN count(DISTINCT machine) FILTER (in_gang) END AS servers,
               bool_and(is_master) AS only_master, bool_and(only_held) FILTER (in_gang) AS only_held
        FROM yarn_gang_members GROUP BY job, attempt
        -- that a master is alone in a list of what is held shows nothing of the gang that it waits for
        HAVING NOT (bool_and(is_master) AND bool_and(only_held))
    ),
    held AS (
        SELECT job, attempt, max(end_ts) AS last_end, max(end_ts) FILTER (gpus > 0) AS last_gpu_end,
               bool_and(end_ts IS NOT NULL OR allocated_ts IS NULL) AS all_ended, bool_or(end_inferred) AS end_inferred,
               min(allocated_ts) FILTER (is_master) AS master_ts, min(exit_code) FILTER (is_master) AS master_exit,
               count(*) FILTER (exit_code = -102) AS preempted
        FROM yarn_containers GROUP BY job, attempt
    ),
    numbers AS (
        SELECT job, unnest(range(latest + 1))::INTEGER AS attempt
        FROM (SELECT job, max(attempt) AS latest FROM yarn_seen WHERE attempt IS NOT NULL GROUP BY job
              UNION ALL
              SELECT job, 0 FROM yarn_jobs
              WHERE job NOT IN (SELECT job FROM yarn_seen WHERE attempt IS NOT NULL)
                AND (launch_ts IS NOT NULL OR machine IS NOT NULL OR state IN ('RUNNING', 'FINISHED')))
    )
    SELECT n.job, n.attempt, list_max(j.sources) AS source, j.submit_ts, j.end_ts AS job_end_ts,
           j.state AS job_state, j.final_status, j.gpus AS job_gpus, j.gpu_seconds,
           n.attempt = max(n.attempt) OVER (PARTITION BY n.job) AS is_last,
           g.first_container_ts, g.gang_ts, g.gang_from, g.gpus, g.cpus, g.mem_mb, g.servers, g.only_master,
           g.only_held, h.last_end, h.last_gpu_end, h.all_ended, h.end_inferred, h.preempted,
           coalesce(h.master_ts, t.allocated_ts) AS master_ts,
           coalesce(t.launch_ts, CASE WHEN n.attempt = 0 THEN j.launch_ts END) AS launch_ts,
           t.end_ts, coalesce(t.exit_code, h.master_exit) AS exit_code, t.reason, t.state
    FROM numbers AS n JOIN yarn_jobs AS j USING (job)
    LEFT JOIN gangs AS g USING (job, attempt) LEFT JOIN held AS h USING (job, attempt)
    LEFT JOIN yarn_attempt_facts AS t USING (job, attempt)
"""

_OF_JOBS = (
    *("name", '"user"', "queue", "final_status", "priority", "submit_ts", "launch_ts", "end_ts", "gpu_seconds"),
    *("reason", "machine", "state"),
)
JOBS = f"""
    CREATE OR REPLACE TEMP TABLE yarn_jobs AS
    WITH best AS (
        SELECT job, {_pick("name", "app_rank")}, {_pick('"user"', "app_rank")},
               {_pick("queue", "(CASE WHEN contains(queue, '.') THEN 0 ELSE 10 END + app_rank)")},
               {_pick("final_status", "app_rank", keep=" AND state IN ('FINISHED', 'FAILED', 'KILLED')")},
               {_pick("priority", "app_rank")}, {_pick("submit_ts", "app_rank")}, {_pick("launch_ts", "app_rank")},
               {_pick("end_ts", "app_rank")}, {_pick("gpu_seconds", "-gpu_seconds")}, {_pick("reason", "app_rank")},
               {_pick("machine", "app_rank")}, max(gpus) AS gpus, {_state(APP_STATES)}
        FROM yarn_seen WHERE attempt IS NULL AND container IS NULL GROUP BY job
    ),
    merged AS (SELECT job, gpus, {_picked(*_OF_JOBS)} FROM best),
    stamped AS (SELECT job, bool_or("local") AS stamped FROM yarn_seen GROUP BY job)
    SELECT s.job, sources, stamped, merged.* EXCLUDE (job)
    FROM yarn_stale AS s JOIN stamped USING (job) LEFT JOIN merged USING (job) WHERE NOT s.{MANAGER}
"""  # noqa: S608

STATE = f"""
    SELECT count(*) AS jobs, coalesce(bool_or({MANAGER}), false) AS manager,
           coalesce(bool_or(len(sources) > 1), false) AS several
    FROM yarn_stale
"""  # noqa: S608
"""How many jobs are stale, whether the ResourceManager stands among them, and whether one has several sources."""
ATTEMPT_ROWS = "SELECT * FROM yarn_attempts ORDER BY job, attempt"
JOB_ROWS = "SELECT * FROM yarn_jobs ORDER BY job"
PLACEMENTS = """
    INSERT INTO placements BY NAME
    SELECT $cluster AS cluster, job, attempt, machine, sum(gpus) AS gpus, list_max(any_value(sources)) AS source
    FROM yarn_gang_members JOIN yarn_stale USING (job)
    WHERE gpus > 0 AND machine IS NOT NULL GROUP BY job, attempt, machine
"""
FIELD_SOURCES = """
    INSERT INTO field_sources BY NAME
    WITH fields AS (
        UNPIVOT (SELECT job, name_from AS name, user_from AS "user", queue_from AS queue, submit_ts_from AS submit_ts,
                        end_ts_from AS end_ts, state_from AS state, final_status_from AS final_status,
                        reason_from AS reason, priority_from AS priority, gpu_seconds_from AS gpu_seconds,
                        launch_ts_from AS launch_ts
                 FROM yarn_jobs WHERE len(sources) > 1)
        ON COLUMNS(* EXCLUDE (job)) INTO NAME field VALUE source
        UNION ALL
        SELECT job, 'start_ts', gang_from FROM yarn_attempts WHERE gang_from IS NOT NULL
        QUALIFY row_number() OVER (PARTITION BY job ORDER BY attempt) = 1
        UNION ALL
        SELECT DISTINCT job, 'machines', machine_from FROM yarn_containers WHERE machine_from IS NOT NULL
        UNION ALL
        SELECT DISTINCT job, 'gpus', gpus_from FROM yarn_containers WHERE gpus_from IS NOT NULL
    )
    SELECT $cluster AS cluster, job, field, source FROM fields JOIN yarn_stale USING (job) WHERE len(sources) > 1
"""
RESTARTS = f"""
    SELECT DISTINCT submit_ts AS ts FROM yarn_facts
    WHERE cluster = $cluster AND {MANAGER} AND origin = 'manager' ORDER BY ts
"""  # noqa: S608
CHANGES = """
    SELECT DISTINCT submit_ts AS ts, machine, state, reason, source FROM yarn_seen
    WHERE origin = 'node' AND submit_ts IS NOT NULL AND machine IS NOT NULL
"""
FORGET = ("job_rows", "attempt_rows", "containers", "placements", "field_sources", "yarn_built")
BUILT = """
    INSERT INTO yarn_built BY NAME
    SELECT $cluster AS cluster, job, sources, $context AS context FROM yarn_stale WHERE sources IS NOT NULL
"""
SEEN_MACHINES = """
    INSERT INTO machines BY NAME
    SELECT DISTINCT $cluster AS cluster, machine FROM yarn_containers
    WHERE machine IS NOT NULL AND machine NOT IN (SELECT machine FROM machines WHERE cluster = $cluster)
"""
