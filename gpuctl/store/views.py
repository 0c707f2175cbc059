"""Views of a trace store for users' own SQL: stable names and columns, each documented.

The underlying tables are internal and change between versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gpuctl.store import lake

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from gpuctl.store.database import Store


class Field(NamedTuple):
    """A column of a view.

    Attributes:
        name: its name.
        kind: its SQL type.
        text: its meaning, with its unit.
    """

    name: str
    kind: str
    text: str


class View(NamedTuple):
    """A view.

    Attributes:
        name: its name, and that of the underlying table.
        text: the meaning of a row.
        fields: its columns.
    """

    name: str
    text: str
    fields: tuple[Field, ...]


_TEXT, _TIME, _NUMBER, _COUNT, _LONG = "VARCHAR", "TIMESTAMP WITH TIME ZONE", "DOUBLE", "INTEGER", "BIGINT"
_CLUSTER = Field("cluster", _TEXT, "the cluster's name in the store")
_JOB = Field("job", _TEXT, "the job's id, as the scheduler has it")
_ATTEMPT = Field("attempt", _COUNT, "number of the attempt of that job, from 0")
_MACHINE = Field("machine", _TEXT, "the node's name")
_TS = Field("ts", _TIME, "when (UTC)")
_EXITS = (
    Field("exit_code", _COUNT, "exit code; NULL where the source has none"),
    Field("exit_signal", _COUNT, "signal that ended it; NULL: none, or not known"),
)

HELD = "held"
HELD_ROWS = "temp.main.rows_held"
"""The view whose rows are computed when a statement names it (`gpuctl.analyze.held`)."""

VIEWS: tuple[View, ...] = (
    View("clusters", "a cluster", (
        _CLUSTER,
        Field("source_format", _TEXT, "format of its job log"),
        Field("timezone", _TEXT, "zone of the times in its logs"),
        Field("clock", _TEXT, "wall: those are local times; utc: they are not"),
        Field("first_ts", _TIME, "first time in its logs (UTC)"),
        Field("last_ts", _TIME, "last time in its logs (UTC)"),
        Field("epoch", _TEXT, "what its times count from: shifted (no dates), relative (no dates either); NULL: real"),
        Field("unit", _TEXT, "what a row of jobs is: pod, instance; NULL: a job"),
    )),
    View("job_dependencies", "a job and one that it follows", (
        _CLUSTER,
        _JOB,
        Field("after_job", _TEXT, "it starts only after the end of this job"),
        Field("think_s", _NUMBER, "seconds from that end to its submission"),
    )),
    View("node_list", "a node of a site's own list", (
        _CLUSTER,
        _MACHINE,
        Field("gpu_type", _TEXT, "type of its GPUs"),
        Field("gpus", _COUNT, "its GPUs"),
        Field("rack", _TEXT, "its rack"),
        Field("installed_ts", _TIME, "begin of the day of its installation (UTC)"),
    )),
    View("submit_options", "an option of the command that submitted a job (Slurm)", (
        _CLUSTER,
        _JOB,
        Field("option", _TEXT, "dependency, exclude or array"),
        Field("value", _TEXT, "as given"),
    )),
    View("training_marks", "a line of a job's log about a checkpoint or the time of an iteration", (
        _CLUSTER,
        _JOB,
        _ATTEMPT,
        Field("stream", _TEXT, "which of the job's logs"),
        Field("line_no", _LONG, "its line"),
        _TS,
        Field("kind", _TEXT, "saved, saving, loaded or iteration"),
        Field("step", _LONG, "the step named"),
        Field("value", _NUMBER, "of kind iteration: seconds"),
    )),
    View("stated_usage", "a figure of GPU time that Slurm's sreport states", (
        _CLUSTER,
        Field("report", _TEXT, "cluster: of all; user: by account and user"),
        Field("account", _TEXT, "NULL: all"),
        Field("login", _TEXT, "the user; NULL: all of the account"),
        Field("tres", _TEXT, "gres/gpu, or of a type: gres/gpu:a100"),
        Field("from_ts", _TIME, "begin of the period (UTC)"),
        Field("to_ts", _TIME, "end of the period (UTC)"),
        Field("gpu_s", _NUMBER, "GPU-seconds allocated"),
        Field("rounding_s", _NUMBER, "GPU-seconds that the report may have rounded off"),
    )),
    View("service_load", "a request to a service, or a span of requests", (
        _CLUSTER,
        Field("service", _TEXT, "the service, or the file that describes it"),
        Field("ts", _TIME, "start of the span (UTC)"),
        Field("span_s", _NUMBER, "its length; 0: one request"),
        Field("requests", _NUMBER, "requests in it"),
        Field("prompt_tokens", _LONG, "tokens that came in; NULL if no source states it"),
        Field("output_tokens", _LONG, "tokens that went out; NULL if no source states it"),
        Field("images", _LONG, "images requested; NULL if no source states it"),
        Field("failed", _NUMBER, "requests without an answer; NULL if no source states it"),
    )),
    View("quota_history", "a quota and a span of time", (
        _CLUSTER,
        Field("queue", _TEXT, "the queue"),
        Field("from_ts", _TIME, "since when (UTC)"),
        Field("to_ts", _TIME, "until when (UTC)"),
        Field("gpus", _NUMBER, "GPUs of its quota"),
    )),
    View("machines", "a node", (
        _CLUSTER, _MACHINE,
        Field("rack", _TEXT, "rack or leaf switch; NULL if no source states it"),
        Field("gpus", _COUNT, "GPUs: the larger of gpus_labelled and gpus_observed"),
        Field("gpus_labelled", _COUNT, "GPUs, as the inventory has it"),
        Field("gpus_observed", _COUNT, "highest GPU index that a job used, plus one"),
        Field("gpu_type", _TEXT, "model of its GPUs"),
        Field("gpu_mem_mb", _LONG, "memory of each GPU, MB"),
        Field("cpus", _COUNT, "CPUs"),
        Field("mem_mb", _LONG, "memory, MB"),
        Field("partition", _TEXT, "partition or node label"),
    )),
    View("queues", "a queue: virtual cluster, YARN queue, Slurm partition or account", (
        _CLUSTER,
        Field("queue", _TEXT, "its name"),
        Field("parent", _TEXT, "the queue above it; NULL: none"),
        Field("quota_gpus", _NUMBER, "GPUs that it is promised; NULL: not known"),
        Field("quota_source", _TEXT, "configured or inferred"),
        Field("limit_gpus", _NUMBER, "most GPUs that it may hold; NULL: no limit, or not known"),
        Field("qos", _TEXT, "quality of service of a Slurm partition"),
    )),
    View("jobs", "a job", (
        _CLUSTER, _JOB,
        Field("queue", _TEXT, "its queue; NULL where the source has none"),
        Field("user", _TEXT, "who submitted it; in SQL the name needs double quotes"),
        Field("account", _TEXT, "the account that it counts for"),
        Field("name", _TEXT, "its name"),
        Field("partition", _TEXT, "the Slurm partition"),
        Field("qos", _TEXT, "the quality of service"),
        Field("array_job", _TEXT, "the array that it is a task of"),
        Field("array_task", _TEXT, "number of that task"),
        Field("submit_ts", _TIME, "submission (UTC)"),
        Field("eligible_ts", _TIME, "when it could start: submission, or the end of a hold or dependency (UTC)"),
        Field("start_ts", _TIME, "first start; NULL: never started (UTC)"),
        Field("end_ts", _TIME, "last end; NULL: not ended (UTC)"),
        Field("deadline_ts", _TIME, "when it is due; NULL: no deadline, or not stated (UTC)"),
        Field("state", _TEXT, "how it ended, in words that all sources share: completed, failed, killed, running, ..."),
        Field("source_state", _TEXT, "the same as the source has it"),
        Field("gpus", _NUMBER, "GPUs, a MIG instance counts as one; NULL: not known"),
        Field("gpu_type", _TEXT, "GPU model that it requested or received (gpu_type_request)"),
        Field("gpu_type_request", _TEXT, "NULL: it requested gpu_type; any: no type; unknown: no source states it"),
        Field("nodes", _COUNT, "nodes"),
        Field("cpus", _COUNT, "CPUs"),
        Field("mem_mb", _LONG, "memory, MB"),
        Field("time_limit_s", _LONG, "time limit, s"),
        Field("priority", _LONG, "priority"),
        *_EXITS,
        Field("reason", _TEXT, "the scheduler's reason"),
        Field("attempts", _COUNT, "attempts that started or waited"),
        Field("wait_s", _NUMBER, "submission to first start, s"),
        Field("run_span_s", _NUMBER, "first start to last end, s"),
        Field("run_sum_s", _NUMBER, "run time, all attempts together, s"),
        Field("run_last_s", _NUMBER, "run time of the last attempt, s"),
        Field("quirks", "VARCHAR[]", "oddities in its records, and their treatment"),
    )),
    View("attempts", "an attempt: each time that a job held its GPUs, or waited for them to the end of the log", (
        _CLUSTER, _JOB, _ATTEMPT,
        Field("queued_ts", _TIME, "submission; of a retry the end of the attempt before (UTC)"),
        Field("eligible_ts", _TIME, "when it could start (UTC)"),
        Field("start_ts", _TIME, "start; NULL: not started (UTC)"),
        Field("end_ts", _TIME, "end; NULL: not ended, or not known (UTC)"),
        Field("released_ts", _TIME, "when its GPUs were free again (UTC)"),
        Field("state", _TEXT, "how it ended, in the same words"),
        Field("source_state", _TEXT, "the same as the source has it"),
        Field("gpus", _NUMBER, "GPUs that it held"),
        Field("servers", _COUNT, "nodes that it was on"),
        Field("wait_s", _NUMBER, "queued_ts to start_ts, s"),
        Field("run_s", _NUMBER, "start_ts to end_ts, s"),
        *_EXITS,
        Field("reason", _TEXT, "the scheduler's reason"),
        Field("started_by", _TEXT, "how Slurm started it: main or backfill scheduler"),
        Field("preempted_by", _TEXT, "the job that took its place"),
        Field("elapsed_s", _NUMBER, "run time without suspensions as the source states it, s"),
        Field("suspended_s", _NUMBER, "time suspended, s"),
        Field("cpu_s", _NUMBER, "CPU seconds used, by the job's own record; sacct -X has none"),
        Field("mem_used_mb", _NUMBER, "sum of the nodes' peaks of memory, MiB; jobstats only"),
        Field("mem_limit_mb", _NUMBER, "sum of the nodes' limits of memory, MiB; jobstats only"),
        Field("mem_node_pct", _NUMBER, "peak of the fullest node over its limit, %; jobstats only"),
        Field("billing", _NUMBER, "billing units allocated (TRESBillingWeights)"),
        Field("gpus_by_type", _TEXT, "GPUs of each type, such as a100=2,h100=4"),
        Field("started_as", _TEXT, "batch, salloc, srun --pty, srun, jupyter; NULL: not known"),
        Field("quirks", "VARCHAR[]", "oddities in its records, and their treatment"),
    )),
    View("step_usage", "the steps that a source lists of an attempt, together", (
        _CLUSTER, _JOB,
        Field("start_ts", _TIME, "start of the first; the last attempt that had started by then ran them (UTC)"),
        Field("steps", _COUNT, "steps, with .batch, .extern and .interactive"),
        Field("cpu_s", _NUMBER, "CPU seconds used by all of them"),
        Field("mem_total_mb", _NUMBER, "memory of the largest step, MiB: mem of TRESUsageInTot"),
        Field("mem_task_mb", _NUMBER, "the same by MaxRSS times NTasks, MiB"),
        Field("batch", "BOOLEAN", "one of them is .batch"),
        Field("interactive", "BOOLEAN", "one of them is .interactive"),
    )),
    View(HELD, "an attempt that held its GPUs, or nodes, for a known time; of a job without attempts, the job", (
        _CLUSTER, _JOB,
        Field("attempt", _COUNT, "number of the attempt, from 0; NULL: the job has none"),
        Field("gpus", _NUMBER, "GPUs that it held; NULL: not known"),
        Field("held_from_ts", _TIME, "allocation of its GPUs, which may come before its start; NULL: not known (UTC)"),
        Field("held_until_ts", _TIME, "their release; of what still runs, the end of its log; NULL: not known (UTC)"),
        Field("gpu_hours", _NUMBER, "GPU-hours from allocation to release: those of the tables overview, users, queues "
              "and accounts; of YARN, of its containers"),
        Field("gpu_hours_from_start", _NUMBER, "GPU-hours from the start to release; NULL where containers came and "
              "went one by one"),
        Field("node_hours", _NUMBER, "node-hours where the GPUs are not known; a node counts for each of its attempts"),
    )),
    View("placements", "an attempt on a node", (
        _CLUSTER, _JOB, _ATTEMPT, _MACHINE,
        Field("gpus", _NUMBER, "GPUs there"),
        Field("gpu_indices", "INTEGER[]", "which ones, as the scheduler numbers them (Slurm: IDX), which "
              "need not be the NVML index that gpu_util has; NULL where the source has only a count"),
        Field("estimated", "BOOLEAN", "the count there is an equal part of the attempt's GPUs"),
    )),
    View("gpu_util", "a sample of a GPU", (
        _CLUSTER, _TS, _MACHINE,
        Field("gpu", _COUNT, "its index, as the source of the telemetry numbers GPUs (NVML)"),
        Field("util", "FLOAT", "utilization, %; NULL: the source has none"),
        Field("mem_mb", "FLOAT", "memory in use, MiB"),
        Field("instance", _TEXT, "id of the MIG instance; NULL: the whole GPU"),
        Field("sm_pct", "FLOAT", "time in which multiprocessors were busy, %; NULL: the source has none"),
        Field("tensor_pct", "FLOAT", "time in which tensor cores were busy, %; NULL: the source has none"),
        Field("power_w", "FLOAT", "draw of the GPU, W; NULL: the source has none"),
        Field("energy_j", _NUMBER, "counter of energy since the driver was loaded, J"),
        Field("job", _TEXT, "the batch job that a label of the sample names; NULL: none"),
        Field("uuid", _TEXT, "UUID of the GPU; NULL: the source has none"),
        Field("util_kind", _TEXT, "what util counts: kernel (time in which a kernel ran), engine (engines of a "
              "MIG instance), sm (multiprocessors)"),
    )),
    View("job_gpu_usage", "a job that held GPUs, and what telemetry shows of their use", (
        _CLUSTER, _JOB,
        Field("gpu_util_mean", _NUMBER, "mean utilization of the GPUs held, %; NULL: withheld"),
        Field("gpu_util_coverage", _NUMBER, "share of the GPU-time held that samples cover, 0 to 1; NULL: not known"),
        Field("gpus_unused", _COUNT, "GPUs of the last attempt of which every sample is 0 %, each covered by half"),
        Field("idle_gpu_h", _NUMBER, "GPU-hours at exactly 0 % for at least the time of --idle-after"),
        Field("gpu_mem_max_mb", _NUMBER, "highest sample of memory in use of one GPU, MiB: a lower bound"),
        Field("energy_kwh", _NUMBER, "energy of the GPUs over the time covered, kWh"),
        Field("gpu_util_low", _NUMBER, "lowest mean that the samples allow, %, if its GPUs are not known one by one"),
        Field("gpu_util_high", _NUMBER, "highest mean that the samples allow, %"),
        Field("withheld", _TEXT, "why there is no mean: no_gpu, no_samples, short, coverage, ambiguous, shared, mig, "
              "peak_only; NULL: there is one"),
        Field("join_by", _TEXT, "how samples were assigned to the job: label, uuid, index, node, range, summary, "
              "step"),
        Field("interval_s", _NUMBER, "seconds between samples, the longest of its series"),
        Field("sm_mean", _NUMBER, "mean activity of multiprocessors, %"),
        Field("tensor_mean", _NUMBER, "mean activity of tensor cores, %"),
        Field("gpu_mem_mean_mb", _NUMBER, "mean memory in use of a GPU, MiB"),
        Field("samples", _LONG, "samples of its GPUs"),
        Field("gpu_hours", _NUMBER, "GPU-hours held, all attempts"),
        Field("util_kind", _TEXT, "the counter, as in gpu_util"),
        Field("readers", _TEXT, "the tools that measured, separated by commas"),
        Field("running", "BOOLEAN", "the job still ran: figures up to the last sample"),
    )),
    View("host_util", "a sample of a node's CPUs and memory", (
        _CLUSTER, _TS, _MACHINE,
        Field("cpu_pct", "FLOAT", "CPU utilization, %"),
        Field("mem_total_kb", _NUMBER, "memory, kB"),
        Field("mem_free_kb", _NUMBER, "free memory, kB"),
    )),
    View("machine_events", "a time in which a node was not available", (
        _CLUSTER, _MACHINE,
        Field("from_ts", _TIME, "its beginning (UTC)"),
        Field("to_ts", _TIME, "its end; NULL: not in the log (UTC)"),
        Field("state", _TEXT, "the state that the scheduler gave it"),
        Field("reason", _TEXT, "why"),
    )),
    View("queue_samples", "a job in a sample of a live queue", (
        _CLUSTER, _TS, _JOB,
        Field("state", _TEXT, "its state then"),
        Field("reason", _TEXT, "why it waited then"),
    )),
    View("job_events", "an event of a job in a scheduler's own log", (
        _CLUSTER, _JOB, _TS,
        Field("event", _TEXT, "what"),
        Field("other_job", _TEXT, "preempted: the job that took its place"),
        Field("machine", _TEXT, "node_fail: the node"),
    )),
    View("job_logs", "a line of job output that a signature knows, or that may explain a failure", (
        _CLUSTER, _JOB,
        Field("attempt", _COUNT, "number of the attempt, from 0; NULL: not known"),
        Field("stream", _TEXT, "stdout, stderr or a file's name"),
        Field("line_no", _LONG, "line, from 1"),
        Field("ts", _TIME, "time of the line (UTC); NULL: it has none"),
        Field("text", _TEXT, "the line"),
        Field("signature", _TEXT, "the signature that knows it"),
        Field("count", _LONG, "lines of that signature in this output"),
    )),
    View("progress", "a line of training progress", (
        _CLUSTER, _JOB,
        Field("attempt", _COUNT, "number of the attempt, from 0; NULL: not known"),
        Field("ts", _TIME, "time of the line (UTC); NULL: it has none"),
        Field("epoch", _NUMBER, "epoch"),
        Field("epochs", _NUMBER, "number planned"),
        Field("step", _LONG, "step"),
        Field("steps", _LONG, "number planned"),
        Field("loss", _NUMBER, "loss, or the metric that `metric` names"),
        Field("metric", _TEXT, "which"),
    )),
    View("sources", "a file that was read", (
        Field("source", _COUNT, "its number"),
        _CLUSTER,
        Field("path", _TEXT, "where it was; members of archives as archive!member"),
        Field("format", _TEXT, "its format"),
        Field("sha256", _TEXT, "digest of its content"),
        Field("bytes", _LONG, "its size"),
        Field("rows_in", _LONG, "records in it: rows_loaded + rows_already_stored + rows_rejected"),
        Field("rows_loaded", _LONG, "records that were understood"),
        Field("rows_already_stored", _LONG, "records that the store already had, with the same content"),
        Field("rows_rejected", _LONG, "records that were not understood, or contradict a record in the store"),
        Field("loaded_at", _TIME, "when it was read (UTC)"),
    )),
    View("rejects", "a record that was not understood", (
        Field("source", _COUNT, "number of its file, see sources"),
        Field("line_no", _LONG, "line, from 1"),
        Field("reason", _TEXT, "why"),
        Field("raw", _TEXT, "the record"),
    )),
)  # fmt: skip


def show(store: Store) -> None:
    """Expose only the views to SQL; no setting can be changed afterwards."""
    empty = ", ".join(f'"{field.name}" {field.kind}' for view in VIEWS if view.name == HELD for field in view.fields)
    store.execute(f"CREATE TEMP TABLE IF NOT EXISTS {HELD_ROWS} ({empty})")
    for view in VIEWS:
        names = ", ".join(f'"{field.name}"' for field in view.fields)
        # names are constants of this module
        prefix = "trace.main."
        if store.lake is not None and view.name in lake.VIEWS:
            prefix = "temp.main.lake_"
        if view.name == HELD:
            prefix = HELD_ROWS.removesuffix(HELD)
        rows = f"SELECT {names} FROM {prefix}{view.name}"  # noqa: S608
        store.execute(f'CREATE VIEW memory.main."{view.name}" AS {rows}')
    for name in lake.VIEWS if store.lake is not None else ():
        store.execute(f"DROP VIEW temp.main.{name}")
    store.execute("USE memory.main")
    store.execute("SET lock_configuration = true")


def ask_in_batches(store: Store, sql: str, params: Mapping[str, Any] | None = None) -> Iterator[pl.DataFrame]:
    """Answer one SELECT over the views in batches; the first frame is yielded even if it is empty.

    Times are in UTC, intervals in seconds, sums of integers are integers.

    Raises:
        UsageError: it is not a statement, several, one that does more than read, or one that DuckDB cannot run.
        StoreError: the store is damaged, or there is not enough memory.
    """
    show(store)
    return map(as_plain, store.batches(sql, params=params))


def as_plain(found: pl.DataFrame) -> pl.DataFrame:
    """Return rows with sums of integers as integers: DuckDB returns them as decimals of 38 digits."""
    import polars as pl

    new = []
    for name, kind in found.schema.items():
        if isinstance(kind, pl.Decimal):
            largest = found[name].cast(pl.Float64).abs().max()
            whole = kind.scale == 0 and (not isinstance(largest, float) or largest < 2**62)
            new.append(pl.col(name).cast(pl.Int64 if whole else pl.Float64))
    return found.with_columns(new)
