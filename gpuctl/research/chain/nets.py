"""Neural nets that say when to submit S: what they see, and what is made of their answers.

``moe`` and ``transformer`` say quantiles of the wait as shares of the planned wait, as ``newsvendor`` does; ``dqn``
what submitting now costs, and waiting for the next look; ``pg`` the lead itself. They train by PyTorch
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
"""Those that say how long S waits, and those that learn for one outage cost."""

SEEN = (*INPUTS, "left_h", "left_by_plan")
"""What ``dqn`` sees: `INPUTS`, and what is left of P, in hours and as a share of the planned wait."""


@dataclass(frozen=True)
class Brain:
    """A trained net, and what it is for.

    Attributes:
        name: of `NETS`.
        net: the net.
        cost: of an hour of interruption, that it was trained for; None: any.
        curve: of its training; empty: it was loaded.
        cpu_s: that its training took, without the simulations.
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
    """Numbers that a net of that name answers."""
    return {"dqn": 2, "pg": 1}.get(name, len(QUANTILES))


OF_WINDOW = (*(look_kernel.NAMES[k] for k in look_kernel.PRESENT), *INPUTS[len(look_kernel.PRESENT) :])
"""What each hour of the transformer's day shows: the queue and what is free then, and the forecasts of now."""


def seen_now(rows: Floats, forecasts: Floats) -> Floats:
    """What ``moe`` and ``pg`` see at looks [looks, features]: logarithms, as most of it has a long tail."""
    return np.log1p(inputs(rows, forecasts))


def seen_choice(rows: Floats, forecasts: Floats, left_h: Floats) -> Floats:
    """What ``dqn`` sees at looks [looks, features]."""
    planned = np.maximum(rows[:, look_kernel.PLANNED], 0.01)
    found: Floats = np.log1p(np.column_stack([inputs(rows, forecasts), left_h, np.minimum(left_h / planned, 100)]))
    return found


def seen_window(rows: Floats, forecasts: Floats, hours: Floats) -> Floats:
    """What ``transformer`` sees at looks: the day before, hour by hour [looks, BEFORE + 1, features].

    Args:
        rows: of the looks [looks, FEATURES].
        forecasts: at these.
        hours: what looks in the hours up to each showed, that itself last [looks, BEFORE + 1, FEATURES].
    """
    now = inputs(rows, forecasts)[:, len(look_kernel.PRESENT) :]
    same = np.broadcast_to(now[:, None], (*hours.shape[:2], now.shape[1]))
    found: Floats = np.log1p(np.concatenate([hours[:, :, look_kernel.PRESENT], same], axis=2))
    return found


def near(rows: Floats, left_h: Floats, step_h: float = 1.0) -> NDArray[np.bool_]:
    """Looks at which S might come late if it waited for the next one: before that there is nothing to choose."""
    found: NDArray[np.bool_] = left_h < rows[:, look_kernel.PLANNED] + step_h
    return found


def costs(waits_h: Floats, left_h: Floats, cost: float) -> Floats:
    """What submitting S costs, in hours of overlap: with that wait, and with so much of P left."""
    found: Floats = cost * np.maximum(waits_h - left_h, 0) + np.maximum(left_h - waits_h, 0)
    return found


def quantiles_h(answers: Floats, rows: Floats) -> Floats:
    """Quantiles of the wait in hours by a net of `OF_WAIT`, none below the one before [looks, quantiles]."""
    shares = np.maximum.accumulate(np.clip(answers, 0, 1), axis=1)
    return np.asarray(shares * rows[:, [look_kernel.PLANNED]], np.float64)


def chosen_lead(answers: Floats, rows: Floats) -> Floats:
    """The lead in hours that ``pg`` answers, at most the planned wait [looks]."""
    share = 0.5 * (1 + np.tanh(0.5 * answers[:, 0]))
    return np.asarray(share * rows[:, look_kernel.PLANNED], np.float64)


def valued_lead(net: Net, rows: Floats, forecasts: Floats) -> float:
    """The longest lead in hours, in tenths, at which ``dqn`` would rather submit than wait, by one look; 0: none."""
    leads = np.arange(0, float(rows[0, look_kernel.PLANNED]) + 0.1, 0.1)
    each = (np.repeat(rows, leads.size, axis=0), np.repeat(forecasts, leads.size, axis=0))
    values = net(seen_choice(*each, leads))
    return float(leads[values[:, 0] <= values[:, 1]].max(initial=0.0))


def rule_of(brain: Brain, cost: float) -> Rule:
    """When S is submitted, by a net.

    Args:
        brain: the net.
        cost: of an hour of interruption, in hours of overlap; for a net of `OF_COST` that which it was trained for.
    """
    answer, share = brain.net.ready(), cost / (1 + cost)

    def wait_h(start: Start, at: Ints, rows: Floats) -> Floats:
        forecasts = start.forecasts(at)
        if brain.name == "transformer":
            answers = answer(seen_window(rows, forecasts, hours(start, at)))
        else:
            answers = answer(seen_now(rows, forecasts))
        return np.array([wait_at(each, np.array([share]))[0] for each in quantiles_h(answers, rows)])

    def lead_h(start: Start, at: Ints, rows: Floats) -> Floats:
        return chosen_lead(answer(seen_now(rows, start.forecasts(at))), rows)

    def by_values(start: Start, at: Ints, rows: Floats) -> int | None:
        left = (start.p_end - at) / 60
        values = answer(seen_choice(rows, start.forecasts(at), left))
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
