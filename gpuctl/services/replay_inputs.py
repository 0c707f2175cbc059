"""What a replay reads: jobs and nodes from a CSV, a trace store or logs, changed as the options say."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.notes import NamedValue, listed, literal, note, together
from gpuctl.core.path_checks import exists
from gpuctl.services.inputs import is_jobs_csv, is_store, opened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any, Literal

    from gpuctl.core.job_filter import JobFilter
    from gpuctl.core.notes import Note
    from gpuctl.core.results import SourceInfo
    from gpuctl.replay.models.records import Cluster, Inference, Workload
    from gpuctl.replay.models.speed import SpeedTable
    from gpuctl.services.frontend import Frontend
    from gpuctl.services.options import Inputs, Rules
    from gpuctl.store.database import Store


BY_TRAITS = "by each job's own efficiency, given (eff_rack, eff_cross) or assumed from its name"
"""What scattered jobs do under policies of deep learning where no option says."""


@dataclass(frozen=True)
class _ReplayOptions:
    """The options that say what is replayed, and what was made of some of them."""

    paths: list[Path]
    inputs: Inputs
    rules: Rules
    slurm_conf: tuple[Path, ...]
    resources: tuple[str, ...]
    reasons: bool
    quotas: Mapping[str, float]
    failing: bool


@dataclass(frozen=True)
class Source:
    """Jobs and nodes, ready to be replayed.

    Attributes:
        workload: the jobs.
        cluster: the nodes.
        sources: the files that the jobs came from.
        rates: the speed model, by name or as a table.
        locality: whether scattered jobs run slower, and why so.
        failed: whether something of the input could not be read.
        speeds_chosen: whether an option says so of scattered jobs.
        chosen: settings of the result: what the filter and the window say, and how many jobs they keep.
        traced: whether the jobs come from a trace that says when they started.
        own: whether the nodes are those that they ran on.
        unchanged: the same without what options change of jobs and nodes; None where they change nothing.
        changes: those options.
    """

    workload: Workload
    cluster: Cluster
    sources: tuple[SourceInfo, ...]
    rates: str | SpeedTable
    locality: str
    failed: bool = False
    speeds_chosen: bool = False
    chosen: dict[str, Note] = dataclasses.field(default_factory=dict)
    traced: bool = False
    own: bool = False
    unchanged: Source | None = None
    changes: tuple[Note, ...] = ()


def read(
    paths: list[Path], inputs: Inputs, wanted: JobFilter, rules: Rules, frontend: Frontend, *,
    slurm_conf: tuple[Path, ...] = (), names: Sequence[tuple[str, dict[str, str]]] = (),
    quotas: Mapping[str, float] | None = None, failing: bool = False,
) -> Source:  # fmt: skip
    """Read jobs and nodes.

    Args:
        paths: a CSV of jobs, a trace store, or logs.
        inputs: the options that say what is replayed on what.
        wanted: which of the jobs; the others are as if they had never been submitted.
        rules: those of speeds, run times and resources.
        frontend: receives the progress, and a report on logs.
        slurm_conf: files of Slurm's configuration.
        names: the policies with their parameters: some go by why attempts failed, which takes longer to find out.
        quotas: GPUs of queues of a trace, where --quotas does not say them.
        failing: whether nodes fail in the replay, so that recorded failures of nodes must not count as well.

    Raises:
        UsageError: the options do not fit together or do not fit the input.
        InputError: the input cannot be read, or nothing of it replayed.
    """
    from gpuctl.replay.models import resources

    if inputs.per_rack is not None and inputs.cluster is None:
        raise UsageError("--per-rack is for the nodes of --cluster", hint="add --cluster 64x8, or omit it")
    if inputs.inference_load is not None and inputs.inference is None:
        raise UsageError("--inference-load is for the nodes of --inference", hint="add --inference 9x8")
    span = _from_to("--window", inputs.window)
    mapped = inputs.columns_map or inputs.unit  # of columns, so that it is no CSV of ours
    options = _ReplayOptions(
        paths,
        inputs,
        rules,
        slurm_conf,
        resources.parse_resources(rules.resources),
        _asks_why(names),
        quotas or {},
        failing,
    )
    tables = [path for path in paths if inputs.log_format is None and not mapped and is_jobs_csv(path)]
    source = _from_csv(options, tables) if tables else _from_trace(options, frontend)
    was = _with_quotas(source.unchanged or source, options)
    changes = _changes(options, source, was)
    found = _prepared(source, options, wanted, span)
    if not changes:
        return found
    plain = dataclasses.replace(
        options, inputs=dataclasses.replace(inputs, scale_load=None, add_nodes=None),
        rules=dataclasses.replace(rules, limits_from="asked"),
    )  # fmt: skip
    before = _prepared(was, plain, wanted, span)
    # other nodes may leave jobs out: those that are left are compared with nothing
    return dataclasses.replace(
        found, unchanged=before if before.workload.ids == found.workload.ids else None, changes=changes
    )


def _with_quotas(source: Source, options: _ReplayOptions) -> Source:
    """The same with the quotas that were calibrated in place of those of --quotas."""
    if not options.quotas or options.inputs.quotas is None:
        return source
    import numpy as np

    quota = np.array([options.quotas.get(queue, math.inf) for queue in source.workload.queues])
    if np.array_equal(quota, source.cluster.quota):
        return source
    return dataclasses.replace(source, cluster=dataclasses.replace(source.cluster, quota=quota))


def _changes(options: _ReplayOptions, source: Source, was: Source) -> tuple[Note, ...]:
    """What options change of jobs and nodes: docs/calibrate.md says which are changes, and which are not."""
    import numpy as np

    inputs, limits = options.inputs, options.rules.limits_from
    stated = limits != "asked" and bool(np.isfinite(source.workload.time_limit).any())
    changes = {
        "--scale-load": None if inputs.scale_load in {None, "1", "1.0"} else inputs.scale_load,
        "--add-nodes": None if inputs.add_nodes in {None, "0"} else inputs.add_nodes,
        "--cluster": None if source.unchanged is None else inputs.cluster,
        "--quotas": None if was is (source.unchanged or source) else str(inputs.quotas),
        # limits for jobs that state none change nothing that is known
        "--limits-from": limits if stated else None,
    }
    return tuple(
        note("{option} {value}", option=literal(option), value=NamedValue("value", value))
        for option, value in changes.items()
        if value is not None
    )


def _prepared(
    source: Source, options: _ReplayOptions, wanted: JobFilter, span: tuple[str | None, str | None] | None
) -> Source:
    """The jobs and nodes as options choose and change them."""
    from gpuctl.replay.inputs import clusters, estimates, transforms
    from gpuctl.replay.models import resources

    inputs, rules = options.inputs, options.rules
    workload, cluster = source.workload, source.cluster
    chosen: dict[str, Note] = {}
    if span is not None:
        workload = transforms.window(workload, *span)
        chosen["window"] = together("; ", workload.notes[len(source.workload.notes) :])
    if wanted:
        every = workload.size
        workload = transforms.choose(workload, wanted)
        chosen["filter"] = wanted.description(workload.size, every)
    if inputs.scale_load is not None:
        workload = transforms.scale_load(workload, transforms.load_factor(inputs.scale_load))
    workload = estimates.with_estimates(workload, rules.run_times)
    workload = estimates.plan_limits(workload, rules.limits_from)
    if inputs.add_nodes is not None:
        cluster = clusters.add_nodes(cluster, inputs.add_nodes)
    if inputs.inference is not None:
        cluster = dataclasses.replace(cluster, inference=_inference(inputs.inference, inputs.inference_load, workload))
    per_gpu = None if rules.per_gpu is None else resources.parse_per_gpu(rules.per_gpu)
    workload, cluster = resources.fill_in_requests(workload, cluster, options.resources, per_gpu)
    chose = rules.speeds is not None or rules.locality is not None
    return dataclasses.replace(
        source, workload=workload, cluster=cluster, chosen=chosen, speeds_chosen=chose, unchanged=None
    )


def _inference(text: str, load: Path | None, workload: Workload) -> Inference:
    from gpuctl.replay.models.inference import aligned, parse_inference

    if load is None or not is_store(load):
        return aligned(parse_inference(text, load), workload.origin)
    from gpuctl.replay.inputs.service_load import read_service_load

    return aligned(read_service_load(load, parse_inference(text, None).gpus), workload.origin)


def by_traits(
    source: Source, models: dict[str, Any], names: list[tuple[str, dict[str, str]]]
) -> tuple[Source, dict[str, Any]]:
    """Let all policies go by each job's own efficiency where one of them does and no option says otherwise."""
    from gpuctl.replay.contract.policy import SHARED_MODELS
    from gpuctl.replay.policies import find
    from gpuctl.replay.run import one_speed_model

    kinds = {find(name).traits for name, _ in names}
    if True not in kinds:
        return source, models
    models = {**models, "compared": len(kinds) > 1}
    if source.unchanged is not None:
        source = dataclasses.replace(source, unchanged=by_traits(source.unchanged, models, names)[0])
    if source.speeds_chosen:
        return source, {**models, "own_speeds": False}
    source = dataclasses.replace(source, locality=BY_TRAITS)
    # one table has one set of speeds, also where an experiment replays each of its policies in a call of its own
    if not one_speed_model(names):
        source = dataclasses.replace(source, rates=SHARED_MODELS["rates"])
    return source, {**models, "own_speeds": one_speed_model(names)}


def gantt_window(text: str | None, workload: Workload) -> tuple[float, float] | None:
    """Return the seconds that ``--gantt`` means; None where it is not given.

    Raises:
        UsageError: it is no FROM..TO, or the workload has no calendar for its dates.
    """
    from gpuctl.replay.inputs.transforms import instant

    span = _from_to("--gantt", text)
    if span is None:
        return None
    begin, end = (None if when is None else instant(workload, when) for when in span)
    return (-math.inf if begin is None else begin, math.inf if end is None else end)


def _from_to(option: str, text: str | None) -> tuple[str | None, str | None] | None:
    if text is None:
        return None
    start, dots, end = text.partition("..")
    if not dots or not (start.strip() or end.strip()):
        hint = "2017-10-02..2017-10-09, 0..86400, or with one end omitted"
        raise UsageError(f"{option} {text}: expected FROM..TO", hint=hint)
    return start.strip() or None, end.strip() or None


def _from_csv(options: _ReplayOptions, tables: list[Path]) -> Source:
    inputs = options.inputs
    [path, *_] = tables
    if len(options.paths) > 1:
        raise UsageError(f"{path} is a CSV of jobs; it must be the only input", hint="give no other input")
    for option, value in (
        ("--db", inputs.db), ("--trace-cluster", inputs.trace_cluster), ("--timezone", inputs.timezone),
        ("--columns", inputs.columns), ("--delimiter", inputs.delimiter), ("--work", inputs.work),
        ("--racks", inputs.racks), ("--swf-unit", inputs.swf_unit),
    ):  # fmt: skip
        if value is not None:
            raise UsageError(f"{option} is for traces; {path} is a CSV of jobs", hint=f"leave {option} out")
    if inputs.cluster is None and not options.slurm_conf:
        raise UsageError(
            f"{path} is a CSV of jobs, without nodes",
            hint="add --cluster 64x8 (nodes x GPUs of each), --cluster pool:512, or --cluster FILE.toml; with "
            "--slurm-conf, the nodes of slurm.conf are used"
            "",
        )
    from gpuctl.replay.inputs.job_csv import read_jobs
    from gpuctl.store.sources import jobs_csv

    workload = read_jobs(path, options.resources)
    cluster = _cluster_of_option(options, workload)
    sources = (jobs_csv(path, workload.size, workload.size),)
    return Source(workload, cluster, sources, *_speeds(options, cluster, "off: a CSV does not record where jobs ran"))


def _from_trace(options: _ReplayOptions, frontend: Frontend) -> Source:
    from gpuctl.analyze.failed_attempts import failed_attempts, interrupted_attempts
    from gpuctl.analyze.options import Options
    from gpuctl.analyze.site_files import read_quotas, read_racks
    from gpuctl.replay.inputs.trace import read_trace
    from gpuctl.replay.inputs.transforms import forget_placement
    from gpuctl.store.database import Store
    from gpuctl.store.sources import read_sources

    inputs = options.inputs

    if inputs.cluster is not None and inputs.racks is not None:
        raise UsageError("--racks is for the trace's own nodes", hint="with --cluster, define racks in a TOML file")
    absent = next((path for path in options.paths if not exists(path)), None)
    if absent is not None:
        raise InputError(
            "no such file or directory",
            path=str(absent),
            hint="give a CSV of jobs, a directory of logs, or a trace store",
        )
    quotas = read_quotas(inputs.quotas) if inputs.quotas else dict(options.quotas)
    racks = read_racks(inputs.racks) if inputs.racks else {}
    work = inputs.work or "sum"
    with (
        opened(options.paths, inputs.db, inputs.logs, frontend, doing="replay", site=inputs.site) as opening,
        Store(opening.path) as store,
    ):
        name = opening.cluster
        workload, own = read_trace(
            store, name, work, quotas=quotas, racks=racks, own_cluster=inputs.cluster is None,
            resources=options.resources, failures=failed_attempts(store, Options(name)) if options.reasons else None,
            failing=options.failing,
            interrupted=interrupted_attempts(store, Options(name)) if options.failing else None,
        )  # fmt: skip
        sources = read_sources(store, workload.name)
        before = _own(store, name, work, options, quotas) if inputs.cluster is not None else None
    failed = opening.failed
    if inputs.cluster is not None:
        workload = forget_placement(workload)
        cluster = _cluster_of_option(options, workload)
        why = "off: these are not the nodes that the jobs ran on"
        return Source(
            workload, cluster, sources, *_speeds(options, cluster, why), failed, traced=True, unchanged=before
        )
    if options.slurm_conf and not own.listed and inputs.racks is None and _has_nodes(options):
        from gpuctl.replay.policies.slurm.cluster import on_nodes

        workload, own = on_nodes(workload, own, _cluster_of_option(options, workload))
    if not own.total_gpus and not (own.nodes and "cpu" in options.resources):
        raise UsageError(
            f"{workload.name}: the log has no nodes with GPUs",
            hint="choose the nodes: --cluster 64x8 (nodes x GPUs of each), --cluster pool:512",
        )
    if not workload.piece_node.size:
        why = "off: the trace does not record where its jobs ran"
        return Source(workload, own, sources, *_speeds(options, own, why), failed, traced=True, own=True)
    why = "off: recorded run times regardless of placement; --locality slows down scattered jobs"
    return Source(workload, own, sources, *_speeds(options, own, why), failed, traced=True, own=True)


def _own(
    store: Store, name: str | None, work: Literal["sum", "last", "span"], options: _ReplayOptions,
    quotas: dict[str, float],
) -> Source | None:  # fmt: skip
    """The trace on its own nodes, to compare others with; None where it names none."""
    from gpuctl.replay.inputs.trace import read_trace

    workload, own = read_trace(store, name, work, quotas=quotas, own_cluster=True, resources=options.resources)
    if not own.total_gpus:
        return None
    return Source(workload, own, (), *_speeds(options, own, "off: recorded run times"), traced=True, own=True)


def _asks_why(names: Sequence[tuple[str, dict[str, str]]]) -> bool:
    from gpuctl.replay.policies import make

    return any(make(name, params).asks_why() for name, params in names)


def _has_nodes(options: _ReplayOptions) -> bool:
    """Whether --slurm-conf names nodes; scontrol's settings alone do not."""
    from gpuctl.slurm.site import read_site

    return bool(read_site(options.slurm_conf).nodes)


def _cluster_of_option(options: _ReplayOptions, workload: Workload) -> Cluster:
    """The nodes of --cluster, or else of --slurm-conf, with the quotas of --quotas."""
    from gpuctl.replay.inputs.clusters import in_racks, parse_cluster

    inputs = options.inputs

    if inputs.cluster is None:
        from gpuctl.replay.policies.slurm.cluster import cluster_of
        from gpuctl.replay.results.settings import nodes_note
        from gpuctl.slurm.site import read_site

        cluster = cluster_of(read_site(options.slurm_conf), workload, options.resources)
        text = note(
            "replayed on {name}: {nodes:,} node{nodes||s}, {total_gpus:,} GPU{total_gpus||s}",
            name=nodes_note(cluster),
            nodes=len(cluster.nodes),
            total_gpus=cluster.total_gpus,
        )
        cluster = dataclasses.replace(cluster, notes=(text, *cluster.notes))
    else:
        cluster = parse_cluster(inputs.cluster, workload)
        if inputs.per_rack is not None:
            cluster = in_racks(cluster, inputs.cluster, inputs.per_rack)
    if inputs.quotas is None:
        return cluster
    import numpy as np

    from gpuctl.analyze.site_files import read_quotas
    from gpuctl.core.suggestions import check_queues

    known = read_quotas(inputs.quotas)
    check_queues(known, workload.queues)
    strangers = sorted(set(known) - set(workload.queues))
    notes = (
        (
            note(
                "{quotas}: quotas for queues without jobs: {strangers}",
                quotas=NamedValue("path", str(inputs.quotas)),
                strangers=listed("queue", strangers, 5),
            ),
        )
        if strangers
        else ()
    )
    quota = np.array([known.get(q, own) for q, own in zip(workload.queues, cluster.quota.tolist(), strict=True)])
    source = "configured" if np.isfinite(quota).any() else cluster.quota_source
    return dataclasses.replace(cluster, quota=quota, quota_source=source, notes=(*cluster.notes, *notes))


def _speeds(options: _ReplayOptions, cluster: Cluster, otherwise: str) -> tuple[str | SpeedTable, str]:
    """The speed model and whether and why scattered jobs run slower."""
    if options.rules.speeds is not None:
        from gpuctl.replay.models.speed import read_speeds

        if options.rules.locality is not None:
            raise UsageError(
                "--speeds and --locality or --no-locality: the table already gives the speed of scattered jobs",
                hint="give only one",
            )
        table = read_speeds(options.rules.speeds)
        return table, f"as {table.name} says"
    if cluster.pool:
        if options.rules.locality:
            raise UsageError("--locality: a pool of GPUs has no places", hint="give nodes: --cluster 64x8")
        return "recorded", "off: a pool has no nodes"
    if options.rules.locality is None:
        return "recorded", otherwise
    return ("locality", "on: --locality") if options.rules.locality else ("recorded", "off: --no-locality")
