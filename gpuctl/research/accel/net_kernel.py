"""Inputs and outputs of nets in the compiled loop: the small pair of nets, and the LSTM."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.research.accel.state import (
    BANDWIDTH,
    EPS,
    FREE_US,
    HIDDEN,
    MOST,
    NOBODY,
    NOW,
    OF_ALL,
    OF_REQUEST,
    READY_COUNT,
    ROWS,
    SEEN_REQUESTS,
    TRAITS,
    USED,
    WORK_US,
)

UNITS = 8
"""Of each of the small nets."""
REQUEST_INPUTS, PAIR_INPUTS = 8, 14
"""Of these: the second one's are the first one's and six more."""
REQUEST_SIZE, PAIR_SIZE = UNITS * (REQUEST_INPUTS + 2), UNITS * (PAIR_INPUTS + 2)
SLACK_US, MANY = 5000.0, 8.0
"""Scales of what is seen."""
CORRECTION = 3.0
"""Weight of the first net's answer beside the rest of the work."""


@inner
def cut(value):  # type: ignore[no-untyped-def]
    """Clip a number to -MOST … MOST."""
    return min(max(value, -MOST), MOST)


@inner
def count_idle(z):  # type: ignore[no-untyped-def]
    """Return the number of idle sub-accelerators."""
    count = 0
    for s in range(z.on.size):
        if z.on[s] == NOBODY:
            count += 1
    return count


@inner
def first_layer(w, x, inputs, h):  # type: ignore[no-untyped-def]
    """Fill `h`: the bias, stored after the weights of all inputs, plus eight inputs times their weights."""
    for j in range(UNITS):
        h[j] = w[inputs * UNITS + j]
    for i in range(REQUEST_INPUTS):
        value = x[i]
        for j in range(UNITS):
            h[j] += value * w[i * UNITS + j]


@inner
def softsigns(v, h):  # type: ignore[no-untyped-def]
    """Return the sum of softsign units times their weights."""
    answer = 0.0
    for j in range(UNITS):
        answer += v[j] * h[j] / (1.0 + abs(h[j]))
    return answer


@inner
def priorities(z):  # type: ignore[no-untyped-def]
    """Compute the keys of all waiting requests by the first small net, and the features of both nets."""
    w, h = z.weights, z.hidden[:UNITS]
    used, idle = z.f[USED] / z.f[BANDWIDTH], count_idle(z) / z.on.size
    many = min(z.c[READY_COUNT] / MANY, MOST)
    for k in range(z.c[READY_COUNT]):
        r = z.ready[k]
        rest, whole_us = z.rest[z.at[r]], z.rest[z.first[r]]
        slack = z.deadline[r] - z.f[NOW] - rest
        x = z.features[r]
        x[0], x[1] = cut(slack / whole_us), 1.0 if slack < -EPS else 0.0
        x[2], x[3] = rest / whole_us, z.log_rest[z.at[r]]
        x[4], x[5] = many, cut(slack / SLACK_US)
        x[6], x[7] = used, idle
        first_layer(w[:REQUEST_SIZE], x, REQUEST_INPUTS, h)
        answer = softsigns(w[REQUEST_SIZE - UNITS : REQUEST_SIZE], h)
        z.key[r] = -int(np.rint(1e6 * (CORRECTION * answer - rest / WORK_US)))


@inner
def begin_pairs(z, r):  # type: ignore[no-untyped-def]
    """Compute the part of the second net that depends on the request alone, once for all sub-accelerators."""
    first_layer(z.weights[REQUEST_SIZE:], z.features[r], PAIR_INPUTS, z.hidden[:UNITS])


@inner
def affinity_of_pair(z, layer, s):  # type: ignore[no-untyped-def]
    """Return the second net's affinity of a request to a sub-accelerator; call `begin_pairs` first."""
    w, h, traits = z.weights[REQUEST_SIZE + REQUEST_INPUTS * UNITS :], z.hidden[: 2 * UNITS], z.traits[layer]
    closer, share = traits[TRAITS * s], traits[TRAITS * s + 1]
    long, bound = 0.3 * traits[TRAITS * s + 2], traits[TRAITS * s + 3]
    wait = 0.3 * np.log1p(z.free[s] / FREE_US)
    can_start = 1.0 if z.on[s] == NOBODY and not z.taken[s] else 0.0
    for j in range(UNITS):
        unit = h[j] + closer * w[j] + wait * w[UNITS + j] + can_start * w[2 * UNITS + j]
        h[UNITS + j] = unit + share * w[3 * UNITS + j] + long * w[4 * UNITS + j] + bound * w[5 * UNITS + j]
    return softsigns(w[(PAIR_INPUTS - REQUEST_INPUTS + 1) * UNITS :], h[UNITS:])


@inner
def select_visible(z):  # type: ignore[no-untyped-def]
    """Select the requests that an agent sees: the waiting ones with the least slack, in its order, ties by row."""
    count = 0
    for k in range(z.c[READY_COUNT]):
        r = z.ready[k]
        z.key[r] = int(np.rint(1e6 * (z.deadline[r] - z.f[NOW] - z.rest[z.at[r]])))
        if count == SEEN_REQUESTS:
            last = z.rows[count - 1]
            if z.key[r] > z.key[last] or (z.key[r] == z.key[last] and r > last):
                continue
            count -= 1
        at = count
        while at > 0:
            other = z.rows[at - 1]
            if z.key[other] < z.key[r] or (z.key[other] == z.key[r] and other < r):
                break
            z.rows[at] = other
            at -= 1
        z.rows[at] = r
        count += 1
    z.c[ROWS] = count


@inner
def observe(z):  # type: ignore[no-untyped-def]
    """Fill the agent's observation."""
    select_visible(z)
    accels = z.on.size
    late = 0
    for k in range(z.c[READY_COUNT]):
        r = z.ready[k]
        if z.deadline[r] - z.f[NOW] - z.rest[z.at[r]] < -EPS:
            late += 1
    z.seen[:] = 0.0
    for k in range(z.c[ROWS]):
        r = z.rows[k]
        layer, whole_us = z.at[r], z.rest[z.first[r]]
        slack, x = z.deadline[r] - z.f[NOW] - z.rest[layer], z.seen[k]
        x[0], x[1] = cut(slack / whole_us), 1.0 if slack < -EPS else 0.0
        x[2], x[3] = z.rest[layer] / whole_us, z.log_rest[layer]
        x[4] = (z.f[NOW] - z.arrival[r]) / whole_us
        x[5] = (z.deadline[r] - z.arrival[r]) / whole_us / 8
        x[6], x[7] = (z.last[r] - layer + 1) / 100, 1.0
        for s in range(accels):
            at, of = OF_REQUEST + 3 * s, TRAITS * s
            x[at], x[at + 1], x[at + 2] = z.traits[layer, of], z.traits[layer, of + 1], z.traits[layer, of + 3]
    for s in range(accels):
        x = z.seen_accels[s]
        x[0], x[1], x[2] = 1.0, 0.0, 0.0
        if z.on[s] != NOBODY:
            x[0], x[1], x[2] = 0.0, np.log1p(z.left[s] / z.speed[s] / FREE_US), z.speed[s]
    x = z.seen_all
    x[0], x[1] = z.c[READY_COUNT] / SEEN_REQUESTS, z.f[USED] / z.f[BANDWIDTH]
    x[2], x[3] = count_idle(z) / accels, late / max(z.c[READY_COUNT], 1)


@inner
def add_to(z, inputs, at, gates):  # type: ignore[no-untyped-def]
    """Add inputs times weights to the gates of the LSTM, which start at index `gates` of `hidden`."""
    width = 4 * z.c[HIDDEN]
    to = z.hidden[gates : gates + width]
    for i in range(inputs.size):
        value, row = inputs[i], z.weights[at + i * width : at + (i + 1) * width]
        if value != 0.0:
            for j in range(width):
                to[j] += value * row[j]


@inner
def act(z):  # type: ignore[no-untyped-def]
    """Compute the LSTM's output for the observation: a priority and affinities of each visible request.

    Weights: inputs x 4 h, h x 4 h, 4 h of bias, h x outputs, outputs; the gates in the order of PyTorch.
    """
    h, accels = z.c[HIDDEN], z.on.size
    of_row, outputs = OF_REQUEST + 3 * accels, 1 + accels
    inputs = of_row + 3 * accels + OF_ALL
    recurrent = inputs * 4 * h
    bias = recurrent + h * 4 * h
    linear = bias + 4 * h
    # hidden: the part that all rows share, gates, output, cell
    common, gates, out, cell = 0, 4 * h, 8 * h, 9 * h
    for j in range(4 * h):
        z.hidden[common + j] = z.weights[bias + j]
    for s in range(accels):
        add_to(z, z.seen_accels[s], (of_row + 3 * s) * 4 * h, common)
    add_to(z, z.seen_all, (of_row + 3 * accels) * 4 * h, common)
    for j in range(2 * h):
        z.hidden[out + j] = 0.0
    for k in range(z.c[ROWS]):
        for j in range(4 * h):
            z.hidden[gates + j] = z.hidden[common + j]
        add_to(z, z.seen[k], 0, gates)
        add_to(z, z.hidden[out : out + h], recurrent, gates)
        for j in range(h):
            come, forget = z.hidden[gates + j], z.hidden[gates + h + j]
            new, show = z.hidden[gates + 2 * h + j], z.hidden[gates + 3 * h + j]
            memory = z.hidden[cell + j] * (0.5 + 0.5 * np.tanh(0.5 * forget))
            z.hidden[cell + j] = memory + (0.5 + 0.5 * np.tanh(0.5 * come)) * np.tanh(new)
            z.hidden[out + j] = (0.5 + 0.5 * np.tanh(0.5 * show)) * np.tanh(z.hidden[cell + j])
        for o in range(outputs):
            answer = z.weights[linear + h * outputs + o]
            for j in range(h):
                answer += z.hidden[out + j] * z.weights[linear + j * outputs + o]
            z.action[k, o] = np.tanh(answer)
