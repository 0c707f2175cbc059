"""Plans: how many GPUs a goal for waits needs, now and with the demand forecast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.capacity.demand import Weeks
    from gpuctl.capacity.fidelity import Chosen
    from gpuctl.capacity.run import Found
    from gpuctl.capacity.sizes import Kind
    from gpuctl.capacity.tables import Price
    from gpuctl.core.notes import Note
    from gpuctl.core.results import Analysis
    from gpuctl.replay.inputs.calibration import Calibration
    from gpuctl.replay.models.records import Cluster, Ints, Workload
    from gpuctl.services.frontend import Frontend
    from gpuctl.services.options import Inputs, Planning, Policies, Rules
    from gpuctl.services.replay_inputs import Source

DEFAULT_HORIZON_WEEKS = 13
FAR = 1.5
"""Factor between the replayed and the recorded figure from which a warning says so."""


@dataclass(frozen=True)
class _Rules:
    """The policies to choose from, and where they come from."""

    policies: list[tuple[str, dict[str, str]]]
    calibration: Calibration | None
    stated: bool


def plan(
    paths: list[Path], wanted: Planning, chosen: Policies, inputs: Inputs, rules: Rules, *, frontend: Frontend,
    command: str,
) -> tuple[Analysis, bool]:  # fmt: skip
    """Plan, and return the result and whether something of the input could not be read.

    Raises:
        UsageError: options make no sense, or the history is too short for the horizon.
        InputError: the input cannot be read.
    """
    from gpuctl.capacity import demand
    from gpuctl.capacity.goal import parse_goal, parse_horizon
    from gpuctl.capacity.run import Question
    from gpuctl.capacity.run import plan as search
    from gpuctl.capacity.sizes import kind_of
    from gpuctl.core.job_filter import JobFilter
    from gpuctl.services.replay_inputs import by_traits, read
    from gpuctl.services.unchanged import with_calibration
    from gpuctl.spread.engine import parse as parse_engine

    goal = parse_goal(wanted.goal)
    weeks_asked = None if wanted.horizon is None else parse_horizon(wanted.horizon)
    if wanted.by_queue and wanted.goal_queue is not None:
        raise UsageError("--by-queue and --queue: one queue, or each of them", hint="give only one")
    chosen, rules, calibration = with_calibration(chosen, rules)
    names = _policies(chosen, calibration)
    source = read(
        paths, inputs, JobFilter(), rules, frontend, slurm_conf=tuple(chosen.slurm_conf or ()), names=names.policies,
        quotas=None if calibration is None else calibration.quotas,
    )  # fmt: skip
    source, models = by_traits(source, rules.models(), names.policies[:1])
    models = {**models, "rates": source.rates, "seed": wanted.seed, "skip_unplaceable": False}
    _check_queue(wanted.goal_queue, source.workload)
    kind = kind_of(source.cluster, wanted.node_size, wanted.node_type)
    removed, what = (None, None) if wanted.remove_nodes is None else _removed(source.cluster, kind, wanted.remove_nodes)
    price = _price(wanted.prices, kind)
    weeks = demand.weeks_of(source.workload)
    ahead = _horizon(weeks, weeks_asked)
    from gpuctl.capacity.fidelity import choose

    with frontend.progress() as bar:
        best = choose(
            source.workload, source.cluster, names.policies, goal, recorded=source.traced and source.own,
            models={**models, "skip_unplaceable": True}, progress=bar.at,
        )  # fmt: skip
        found = search(
            source.workload, source.cluster, best.policy,
            Question(goal, wanted.goal_queue, wanted.by_queue, wanted.draws, wanted.seed, kind, removed),
            weeks_ahead=ahead, models=models, engine=parse_engine("local", wanted.jobs), progress=bar.at,
            notify=bar.tell,
        )  # fmt: skip
    made = _result(found, source, best, names, price, what=what, asked=weeks_asked, command=command)
    return made, source.failed


def _policies(chosen: Policies, calibration: Calibration | None) -> _Rules:
    """The policy that the user states, the calibrated one, or those to choose from."""
    from gpuctl.capacity.fidelity import CANDIDATES
    from gpuctl.services.policy_choice import policies

    if calibration is not None or chosen.policy:
        given = policies(chosen.policy or (), chosen.param or (), chosen.conf)
        if calibration is not None:
            given = [each for each in given if each[0] == calibration.policy] or given
        if len(given) > 1:
            raise UsageError("--policy: a plan has one policy", hint="one plan for each, and compare them")
        return _Rules(given, calibration, stated=True)
    if chosen.param:
        raise UsageError("--param is for a policy that you name", hint="add --policy NAME")
    own = ["slurm"] if chosen.slurm_conf else ["yarn-capacity"] if chosen.yarn_conf else []
    return _Rules(policies([*own, *CANDIDATES], (), chosen.conf), None, stated=False)


def _horizon(weeks: Weeks, asked: int | None) -> int:
    """Weeks ahead; 0 if the history is too short for any.

    Raises:
        UsageError: it is too short for those that the user asks for.
    """
    from gpuctl.capacity.demand import LEAST_WEEKS, farthest

    most = farthest(weeks)
    if asked is not None and asked > most:
        count = f"{weeks.count} whole week{'' if weeks.count == 1 else 's'} of history"
        if most:
            raise UsageError(f"--horizon: {count} forecast at most {most} weeks ahead", hint=f"--horizon {most}w")
        hint = "leave --horizon out: the plan is for the present demand"
        raise UsageError(f"--horizon: {count} are too few for a forecast, which needs {LEAST_WEEKS}", hint=hint)
    return min(most, DEFAULT_HORIZON_WEEKS) if asked is None else asked


def _check_queue(queue: str | None, workload: Workload) -> None:
    if queue is None:
        return
    import numpy as np

    from gpuctl.core.suggestions import meant

    there = [workload.queues[at] for at in np.unique(workload.queue).tolist()]
    if queue not in there:
        raise UsageError(f"--queue {queue}: no job is in such a queue", hint=meant(queue, there))


def _removed(cluster: Cluster, kind: Kind, text: str) -> tuple[Ints, Note]:
    """The nodes that ``--remove-nodes`` means: how many of a kind, ``rack:NAME``, or names; and what they are called.

    Raises:
        UsageError: there are no such nodes, or none would stay.
    """
    import numpy as np

    from gpuctl.core.notes import NamedValue, listed, note
    from gpuctl.core.suggestions import meant

    if cluster.pool:
        raise UsageError("--remove-nodes: a pool of GPUs has no nodes", hint="give nodes: --cluster 64x8")
    if text.isascii() and text.isdigit():
        alike = np.flatnonzero((cluster.gpus == kind.gpus) & (cluster.gpu_type == kind.gpu_type))
        if not 0 < int(text[:9]) <= alike.size:
            raise UsageError(f"--remove-nodes {text}: there are {alike.size} nodes of {kind.gpus} GPUs")
        gone, what = alike[-int(text) :], note("{count:,} node{count||s}", count=int(text))
    elif text.startswith("rack:"):
        rack = text.removeprefix("rack:")
        if rack not in cluster.racks:
            raise UsageError(f"--remove-nodes {text}: no such rack", hint=meant(rack, cluster.racks))
        gone = np.flatnonzero(cluster.rack == cluster.racks.index(rack))
        what = note("rack {rack}, {count:,} node{count||s}", rack=NamedValue("rack", rack), count=gone.size)
    else:
        from gpuctl.slurm.hostlist import expand

        names = expand(text)
        strange = next((name for name in names if name not in cluster.nodes), None)
        if strange is not None:
            raise UsageError(f"--remove-nodes: no node {strange!r}", hint=meant(strange, cluster.nodes))
        gone = np.array(sorted({cluster.nodes.index(name) for name in names}), np.int64)
        what = note("{nodes}", nodes=listed("machine", names, 5))
    if cluster.total_gpus <= int(cluster.gpus[gone].sum()):
        raise UsageError(f"--remove-nodes {text}: no GPU would stay", hint="remove fewer nodes")
    return gone.astype(np.int64), what


def _price(path: Path | None, kind: Kind) -> Price | None:
    """The price of the nodes that are added: of their type, or of the only type that the file has.

    Raises:
        InputError: the file is not what it should be.
        UsageError: it has no price for this type.
    """
    if path is None:
        return None
    from gpuctl.analyze.site_files import read_prices
    from gpuctl.capacity.tables import Price

    prices = [one for one in read_prices(path) if one.account is None]
    types = sorted({one.gpu_type for one in prices})
    name = kind.name.lower() if kind.name else types[0] if len(types) == 1 else ""
    own = [one for one in prices if one.gpu_type == name]
    if not own:
        called = kind.name or "of an unknown type"
        raise UsageError(
            f"--prices {path}: no price for GPUs {called}, for all accounts",
            hint=f"add one; the file has {', '.join(types) or 'none'}",
        )
    # the last one in time is that of nodes to come
    last = max(own, key=lambda one: (one.to_date is None, one.to_date, one.from_date is not None, one.from_date))
    return Price(float(last.price), name)


def _result(
    found: Found, source: Source, best: Chosen, names: _Rules, price: Price | None, *, what: Note | None,
    asked: int | None, command: str,
) -> Analysis:  # fmt: skip
    from gpuctl.capacity import sentences, tables
    from gpuctl.core.notes import NamedValue, literal, note
    from gpuctl.core.results import Analysis
    from gpuctl.replay.results.settings import nodes_note

    made = [tables.answer(found, price), tables.curve(found)]
    if what is not None:
        made.append(tables.removed(found))
    made += [each for each in (tables.demand(found), tables.growths(found.base.weeks), tables.backtest(found))
             if each.frame.height]  # fmt: skip
    settings: dict[str, Note] = {
        "goal": literal(f"{found.base.question.goal.what} of at most "
                        f"{found.base.question.goal.bound}"),
        "nodes": note("{nodes}: {count:,} node{count||s}, {gpus:,} GPU{gpus||s}", nodes=nodes_note(found.base.cluster),
                      count=len(found.base.cluster.nodes), gpus=found.base.cluster.total_gpus),
    }  # fmt: skip
    for time in reversed(range(len(found.draws))):
        for scope in found.base.scopes:
            key = " ".join(("answer", tables.when(found, time), *([] if scope == found.base.scopes[0] else [scope])))
            settings[key] = sentences.answer(found, time, scope, price)
        if what is not None:
            settings[f"removed {tables.when(found, time)}"] = sentences.without(found, time, found.base.scopes[0], what)
    settings |= {
        "policy": sentences.policy(found, best, _origin(best, names)),
        "forecast": sentences.forecast(found),
        "futures": sentences.draws(found),
        "seed": literal(str(found.base.question.seed)),
    }
    return Analysis(
        cluster=note("{name}", name=NamedValue("cluster", found.base.workload.name)),
        tables=tuple(made), sections=tables.SECTIONS, sources=source.sources, settings=settings, command=command,
        warnings=tuple(_warnings(found, source, best, asked)),
    )  # fmt: skip


def _origin(best: Chosen, names: _Rules) -> Note:
    from gpuctl.core.notes import note

    if names.calibration is not None:
        return note("calibrated")
    if names.stated:
        return note("given, not calibrated")
    if not best.tried:
        return note("assumed, not calibrated")
    return note("nearest of {count} tried, not calibrated", count=len(best.tried))


def _warnings(found: Found, source: Source, best: Chosen, asked: int | None) -> list[Note]:
    """What to know before the figures are trusted, the worst first."""
    from gpuctl.capacity.demand import LEAST_WEEKS, PERIOD
    from gpuctl.core.notes import literal, note

    goal, own, weeks = found.base.question.goal, best.fidelity, found.base.weeks.count
    told: list[Note] = []
    if own is not None and not (own.recorded / FAR <= own.replayed <= own.recorded * FAR):
        told.append(
            note("the policy does not reproduce the trace: its {what} is {replayed}, recorded {recorded}; every size "
                 "may be off by as much. gpuctl calibrate looks for the trace's rules",
                 what=literal(goal.what), replayed=literal(goal.shown(own.replayed)),
                 recorded=literal(goal.shown(own.recorded)))
        )  # fmt: skip
    if not source.cluster.listed:
        told.append(note("the log lists no nodes: the present size is inferred from where jobs ran"))
    if found.forecast is None:
        told.append(note("{weeks} whole week{weeks||s} of history, fewer than the {least} that a forecast needs: the "
                         "plan is for present demand alone", weeks=weeks, least=LEAST_WEEKS))  # fmt: skip
    elif asked is None and found.forecast.horizon < DEFAULT_HORIZON_WEEKS:
        told.append(note("{weeks} week{weeks||s} of history {weeks|forecasts|forecast} at most {most} "
                         "week{most||s} ahead", weeks=weeks, most=found.forecast.horizon))  # fmt: skip
    if found.forecast is not None and found.forecast.too_wide:
        told.append(note("demand varied too much for a forecast {weeks} week{weeks||s} ahead: the plan is for "
                         "present demand",
                         weeks=found.forecast.horizon))  # fmt: skip
    if found.forecast is not None and weeks < 78:
        told.append(note("less than a year and a half of history shows no yearly season"))
    if not found.base.by_weeks:
        told.append(note("the history is shorter than {weeks} week{weeks||s}: its days are drawn, and longer "
                         "backlogs broken up",
                         weeks=PERIOD))  # fmt: skip
    if found.too_large:
        told.append(note("{jobs:,} job{jobs||s} larger than the present nodes {jobs|is|are} left out",
                         jobs=found.too_large))  # fmt: skip
    if source.cluster.down is not None and len(source.cluster.down):
        told.append(note("recorded outages of nodes are not repeated: all nodes are up in the futures"))
    return [*told, *dict.fromkeys((*source.workload.notes, *source.cluster.notes))]
