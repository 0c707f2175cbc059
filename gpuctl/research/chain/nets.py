"""Neural nets that decide when to submit S: their inputs and the use of their outputs.

``moe`` and ``transformer`` output quantiles of the wait as shares of the planned wait, like ``newsvendor``; ``dqn`` the
costs of submitting now and of waiting for the next look; ``pg`` the lead itself. They train by PyTorch
(`gpuctl.research.chain.net_training`) and run on NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.research.chain import look_kernel
from gpuctl.research.chain.policies import BEFORE, INPUTS, QUANTILES, Rule, due, hours, inputs, searched, wait_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.research.chain.policies import Start
    from gpuctl.research.learn.nets import Net

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

NETS = ("dqn", "pg", "transformer", "moe")
OF_WAIT, OF_COST = ("transformer", "moe"), ("dqn", "pg")
"""Nets that forecast S's wait, and nets trained for one outage cost."""

SEEN = (*INPUTS, "left_h", "left_by_plan")
"""Inputs of ``dqn``: `INPUTS`, and P's remaining time in hours and as a share of the planned wait."""


@dataclass(frozen=True)
class Brain:
    """A trained net and its purpose.

    Attributes:
        name: one of `NETS`.
        net: layers and weights.
        cost: cost of an hour of interruption in training; None: any.
        curve: training curve; empty: the net was loaded.
        cpu_s: CPU seconds of training, without simulations.
    """

    name: str
    net: Net
    cost: float | None
    curve: list[dict[str, float]]
    cpu_s: float


def shape_of(name: str) -> tuple[int, ...]:
    """Shape of one input of a net of that name."""
    return {"transformer": (BEFORE + 1, len(OF_WINDOW)), "dqn": (len(SEEN),)}.get(name, (len(INPUTS),))


def outputs_of(name: str) -> int:
    """Number of outputs of a net of that name."""
    return {"dqn": 2, "pg": 1}.get(name, len(QUANTILES))


OF_WINDOW = (*(look_kernel.NAMES[k] for k in look_kernel.PRESENT), *INPUTS[len(look_kernel.PRESENT) :])
"""Inputs per hour of the transformer's day: queue and free nodes in that hour, and the present forecasts."""


def inputs_now(rows: Floats, forecasts: Floats) -> Floats:
    """Inputs of ``moe`` and ``pg`` [looks, features]: logarithms, as most values have a long tail."""
    return np.log1p(inputs(rows, forecasts))


def choice_inputs(rows: Floats, forecasts: Floats, left_h: Floats) -> Floats:
    """Inputs of ``dqn`` [looks, features]."""
    planned = np.maximum(rows[:, look_kernel.PLANNED], 0.01)
    found: Floats = np.log1p(np.column_stack([inputs(rows, forecasts), left_h, np.minimum(left_h / planned, 100)]))
    return found


def window_inputs(rows: Floats, forecasts: Floats, hours: Floats) -> Floats:
    """Inputs of ``transformer``: the day before each look, by hour [looks, BEFORE + 1, features].

    Args:
        rows: features of the looks [looks, FEATURES].
        forecasts: forecasts at the looks.
        hours: features in the hours up to each look, the look last [looks, BEFORE + 1, FEATURES].
    """
    now = inputs(rows, forecasts)[:, len(look_kernel.PRESENT) :]
    same = np.broadcast_to(now[:, None], (*hours.shape[:2], now.shape[1]))
    found: Floats = np.log1p(np.concatenate([hours[:, :, look_kernel.PRESENT], same], axis=2))
    return found


def near(rows: Floats, left_h: Floats, step_h: float = 1.0) -> NDArray[np.bool_]:
    """Looks at which S might start late if submitted at the next one; earlier looks need no choice."""
    found: NDArray[np.bool_] = left_h < rows[:, look_kernel.PLANNED] + step_h
    return found


def costs(waits_h: Floats, left_h: Floats, cost: float) -> Floats:
    """Cost of submitting S, in hours of overlap, by its wait and P's remaining time."""
    found: Floats = cost * np.maximum(waits_h - left_h, 0) + np.maximum(left_h - waits_h, 0)
    return found


def quantiles_h(answers: Floats, rows: Floats) -> Floats:
    """Quantiles of the wait in hours by a net of `OF_WAIT`, non-decreasing [looks, quantiles]."""
    shares = np.maximum.accumulate(np.clip(answers, 0, 1), axis=1)
    return np.asarray(shares * rows[:, [look_kernel.PLANNED]], np.float64)


def pg_lead(answers: Floats, rows: Floats) -> Floats:
    """The lead of ``pg`` in hours, at most the planned wait [looks]."""
    share = 0.5 * (1 + np.tanh(0.5 * answers[:, 0]))
    return np.asarray(share * rows[:, look_kernel.PLANNED], np.float64)


def valued_lead(net: Net, rows: Floats, forecasts: Floats) -> float:
    """The longest lead in hours, in tenths, at which ``dqn`` submits instead of waiting, by one look; 0: none."""
    leads = np.arange(0, float(rows[0, look_kernel.PLANNED]) + 0.1, 0.1)
    each = (np.repeat(rows, leads.size, axis=0), np.repeat(forecasts, leads.size, axis=0))
    values = net(choice_inputs(*each, leads))
    return float(leads[values[:, 0] <= values[:, 1]].max(initial=0.0))


def rule_of(brain: Brain, cost: float) -> Rule:
    """The rule of a net that submits S.

    Args:
        brain: the net.
        cost: of an hour of interruption, in hours of overlap; for a net of `OF_COST` that which it was trained for.
    """
    answer, share = brain.net.ready(), cost / (1 + cost)

    def wait_h(start: Start, at: Ints, rows: Floats) -> Floats:
        forecasts = start.forecasts(at)
        if brain.name == "transformer":
            answers = answer(window_inputs(rows, forecasts, hours(start, at)))
        else:
            answers = answer(inputs_now(rows, forecasts))
        return np.array([wait_at(each, np.array([share]))[0] for each in quantiles_h(answers, rows)])

    def lead_h(start: Start, at: Ints, rows: Floats) -> Floats:
        return pg_lead(answer(inputs_now(rows, start.forecasts(at))), rows)

    def by_values(start: Start, at: Ints, rows: Floats) -> int | None:
        left = (start.p_end - at) / 60
        values = answer(choice_inputs(rows, start.forecasts(at), left))
        now = np.flatnonzero((values[:, 0] <= values[:, 1]) & near(rows, left))
        return int(at[now[0]]) if now.size else None

    if brain.name == "dqn":
        return Rule(lambda start: searched(start, by_values))
    wanted = lead_h if brain.name == "pg" else wait_h
    of_wait = brain.name in OF_WAIT
    return Rule(
        lambda start: searched(start, lambda s, at, rows: due(s, at, wanted(s, at, rows))),
        wait_h if of_wait else None, share if of_wait else None,
    )  # fmt: skip
