"""The compiled allocator of Mesos, and the frameworks that receive its offers.

Waiting frameworks are visited when an offer is possible: at the multiple of the cycle after a release, an expired
filter, or another framework's refusal. Nothing can happen in between.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, ints, rows
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.instant_kernel import named_timer
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import hide
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.resource_kernel import dominant_share, find_for
from gpuctl.replay.engine.state import WAITING
from gpuctl.replay.order.waiting_kernel import insert, pop

R_ACCEPTED = len(REASONS)
MESOS_REASONS = ("its queue or user accepts what it is offered",)

MESOS = np.dtype(
    [
        ("cycle", "f8"),
        ("filter", "f8"),
        ("revive", "f8"),
        ("timeout", "f8"),
        ("hold", "i8"),
        ("least", "i8"),  # free GPUs below which an agent that is not idle is not offered
        ("freed", "i8"),  # number of releases so far
        ("back", "i8"),  # 1: a release at this instant
        ("changed", "f8"),  # time of the last release, arrival or start
        ("resort", "i8"),  # 1: shares have changed since `order` was sorted
        ("left", "i8"),  # agents not yet offered in this cycle
    ],
    align=True,
)

FRAMEWORK = np.dtype(
    [
        ("weight", "f8"),
        ("share", "f8"),
        ("due", "f8"),  # earliest time of its next offer; inf: after the next change
        ("revive", "f8"),  # when it clears its filters next
        ("waiting", "i8"),
    ],
    align=True,
)

AGENT = np.dtype(
    [
        ("offered", "f8"),  # cycle of its last offer
        ("since", "f8"),
        ("owner", "i8"),  # the framework that keeps an offer of it; -1 none
        ("mine", "i8"),  # for the current framework: 1 kept, 2 offered now
    ],
    align=True,
)

FILTER = np.dtype([("until", "f8"), ("gpus", "i8"), ("cpu", "i8"), ("mem", "i8")], align=True)
"""A framework's refusal of an agent: it is not offered this much or less of it until a second.

The latest refusal replaces earlier ones; Mesos' allocator keeps all.
"""


class Offers(Bundle):
    """Input and memory of the policy."""

    p = rows(MESOS)  # one record of `MESOS`
    frameworks = rows(FRAMEWORK)  # records of `FRAMEWORK` [tenants]
    agents = rows(AGENT)  # records of `AGENT` [nodes]
    filters = rows(FILTER)  # records of `FILTER`, by framework, then agent [tenants * nodes]
    order = ints()  # frameworks by share, then number, as last sorted [tenants]
    how = ints()  # placement of each job
    shape = ints()  # jobs of one number have equal requests
    # by shape, the number of releases when it did not fit on all free resources
    bad = ints()


# ---- agents


@inner
def _has_some(s, number):  # type: ignore[no-untyped-def]
    """Whether the agent has anything to offer."""
    node = s.nodes[number]
    if node.up == 0:
        return False
    if node.free > 0 or s.g[0].resources == 0:
        return node.free > 0
    return s.stock[number].cpu_free > 0 or s.stock[number].mem_free > 0


@inner
def _enough(s, f, number):  # type: ignore[no-untyped-def]
    """Whether an agent's free resources suffice for an offer; an idle agent's always do, for gangs to start."""
    node = s.nodes[number]
    if node.free >= f.p[0].least:
        return True
    idle = node.free == node.cap
    if s.g[0].resources == 1:
        stock = s.stock[number]
        idle = idle and stock.cpu_free == stock.cpu and stock.mem_free == stock.mem
    return idle


@inner
def _filtered(s, f, framework, number):  # type: ignore[no-untyped-def]
    """Whether an active filter of the framework covers the agent's free resources."""
    found = f.filters[framework * s.nodes.size + number]
    if found.until <= s.g[0].now or s.nodes[number].free > found.gpus:
        return False
    if s.g[0].resources == 1:
        stock = s.stock[number]
        return stock.cpu_free <= found.cpu and stock.mem_free <= found.mem
    return True


@inner
def _refuse(s, f, framework, number):  # type: ignore[no-untyped-def]
    found = f.filters[framework * s.nodes.size + number]
    found.until = s.g[0].now + f.p[0].filter
    found.gpus = s.nodes[number].free
    if s.g[0].resources == 1:
        found.cpu, found.mem = s.stock[number].cpu_free, s.stock[number].mem_free


@inner
def _revive(s, f, framework):  # type: ignore[no-untyped-def]
    """Clear the framework's filters."""
    for number in range(s.nodes.size):
        f.filters[framework * s.nodes.size + number].until = -np.inf
    f.frameworks[framework].revive = s.g[0].now + f.p[0].revive
    f.frameworks[framework].due = s.g[0].now


@inner
def _all_due(f, t):  # type: ignore[no-untyped-def]
    for framework in range(f.frameworks.size):
        f.frameworks[framework].due = min(f.frameworks[framework].due, t)


# ---- one offer


@inner
def _gather(s, f, framework):  # type: ignore[no-untyped-def]
    """Mark the agents of an offer.

    Returns:
        the number of agents offered, and of other agents on which something might fit.
    """
    p, this, now = f.p[0], f.frameworks[framework], s.g[0].now
    this.due = np.inf
    mine, others = 0, 0
    for number in range(s.nodes.size):
        agent = f.agents[number]
        agent.mine = 0
        if not _has_some(s, number):
            # nor may a job without requests use it
            others += s.g[0].resources
            continue
        if agent.owner == framework:
            agent.mine = 1
            this.due = min(this.due, agent.since + p.timeout)
        elif agent.owner < 0 and agent.offered == now:
            # another framework holds it; what it declines is offered in the next cycle
            this.due = min(this.due, now + p.cycle)
        elif agent.owner < 0 and _enough(s, f, number):
            if _filtered(s, f, framework, number):
                this.due = min(this.due, f.filters[framework * s.nodes.size + number].until)
            else:
                agent.mine = 2
        if agent.mine > 0:
            mine += 1
        else:
            others += 1
    return mine, others


@inner
def _hopeless(s, q, f, framework):  # type: ignore[no-untyped-def]
    """Whether the framework's first job does not fit even on all free resources, until the next release."""
    j = q.head[framework]
    if f.bad[f.shape[j]] != f.p[0].freed and not find_for(s, j, f.how[j]):
        f.bad[f.shape[j]] = f.p[0].freed
    return f.bad[f.shape[j]] == f.p[0].freed


@inner
def _accept(s, q, f, framework, others):  # type: ignore[no-untyped-def]
    """Start the framework's jobs, in order, on its offered agents, up to the first one that does not fit."""
    if _hopeless(s, q, f, framework):
        return
    if others > 0:
        for number in range(s.nodes.size):
            if f.agents[number].mine == 0:
                hide(s, number, s.nodes[number].free + 1)
    j = q.head[framework]
    while j >= 0:
        if not find_for(s, j, f.how[j]):
            break
        pop(q, framework)
        f.frameworks[framework].waiting -= 1
        f.p[0].changed = s.g[0].now
        f.p[0].resort = 1
        launch(s, j, R_ACCEPTED)
        j = q.head[framework]
    if others > 0:
        for number in range(s.nodes.size):
            if f.agents[number].mine == 0:
                hide(s, number, 0)


@inner
def _offer(s, q, f, framework):  # type: ignore[no-untyped-def]
    """Offer the framework all free, unfiltered resources, and process its answer."""
    p, this, now = f.p[0], f.frameworks[framework], s.g[0].now
    mine, others = _gather(s, f, framework)
    if mine == 0:
        return
    _accept(s, q, f, framework, others)
    for number in range(s.nodes.size):
        agent = f.agents[number]
        if agent.mine == 2:
            agent.offered = now
            p.left -= 1
        if agent.mine == 0:
            continue
        if this.waiting == 0 or not _has_some(s, number):
            agent.owner = -1
        elif p.hold == 1:
            if agent.mine == 2:
                agent.owner, agent.since = framework, now
                this.due = min(this.due, now + p.timeout)
        else:
            _refuse(s, f, framework, number)
            this.due = min(this.due, now + p.filter)
    if this.waiting == 0 and p.hold == 1:
        _all_due(f, now + p.cycle)


# ---- the cycle


@inner
def _sort(s, f):  # type: ignore[no-untyped-def]
    """Sort the frameworks; they are nearly sorted, so insertion is quick."""
    f.p[0].resort = 0
    for k in range(f.order.size):
        framework = f.order[k]
        this = f.frameworks[framework]
        this.share = dominant_share(s, framework, this.weight)
        at = k
        while at > 0:
            other = f.frameworks[f.order[at - 1]]
            if other.share < this.share or (other.share == this.share and f.order[at - 1] < framework):
                break
            f.order[at] = f.order[at - 1]
            at -= 1
        f.order[at] = framework


@inner
def _cycle(s, q, f):  # type: ignore[no-untyped-def]
    """One allocation: offers to due frameworks, the least dominant share first."""
    p, now = f.p[0], s.g[0].now
    p.left = 0
    for number in range(s.nodes.size):
        agent = f.agents[number]
        if agent.owner >= 0 and now >= agent.since + p.timeout:
            # the offer is rescinded
            agent.owner = -1
            _all_due(f, now)
        if agent.owner < 0 and _has_some(s, number) and _enough(s, f, number):
            p.left += 1
    for k in range(f.frameworks.size):
        this = f.frameworks[k]
        if this.waiting > 0 and this.revive <= now:
            _revive(s, f, k)
        if p.left == 0 and p.hold == 0:
            # nothing to offer until the next release
            this.due = np.inf
    if p.left == 0 and p.hold == 0:
        return
    if p.resort == 1:
        _sort(s, f)
    for k in range(f.order.size):
        if p.left == 0 and p.hold == 0:
            # frameworks still due are offered what others declined in the next cycle
            return
        this = f.frameworks[f.order[k]]
        if this.waiting > 0 and this.due <= now:
            _offer(s, q, f, f.order[k])


@inner
def _next_cycle(s, f):  # type: ignore[no-untyped-def]
    """Set a timer for the next cycle with a possible offer to a waiting framework."""
    g, p = s.g[0], f.p[0]
    t, count = np.inf, 0
    for k in range(f.frameworks.size):
        this = f.frameworks[k]
        if this.waiting > 0:
            t = min(t, this.due, this.revive)
            count += 1
    patience = p.revive + p.filter + 2 * p.timeout + (count + 2) * p.cycle
    if g.running == 0 and g.now > p.changed + patience:
        # everything is free and was offered to the first framework: its job can never fit, and only an arrival changes
        # that
        return
    if t < np.inf:
        k = np.ceil(max(t, g.now) / p.cycle - 1e-9)
        while k * p.cycle <= g.now:
            k += 1
        named_timer(s, 0, k * p.cycle)


@inner
def on_submit(s, j, q, f):  # type: ignore[no-untyped-def]
    """Handle a submitted job: its framework requests offers."""
    f.p[0].resort = 1
    if s.jobs[j].state != WAITING:
        return
    insert(q, j)
    framework = s.jobs[j].share
    this = f.frameworks[framework]
    this.waiting += 1
    f.p[0].changed = s.g[0].now
    if this.waiting == 1:
        # it suppressed offers while it had nothing to run
        _revive(s, f, framework)
    elif q.head[framework] == j:
        this.due = s.g[0].now


@inner
def on_requeue(s, j, q, f):  # type: ignore[no-untyped-def]
    """Handle a requeued job, whose resources are free."""
    f.p[0].back = 1
    on_submit(s, j, q, f)


@inner
def freed(s, _who, q, f):  # type: ignore[no-untyped-def]
    """Handle released resources."""
    f.p[0].resort = 1
    f.p[0].back = 1


@inner
def on_node_down(s, _server, q, f):  # type: ignore[no-untyped-def]
    """Handle a change of nodes, which changes all shares."""
    f.p[0].resort = 1


@inner
def decide(s, q, f):  # type: ignore[no-untyped-def]
    """Make the offers of this instant if a cycle is due."""
    g, p = s.g[0], f.p[0]
    if p.back == 1:
        p.back = 0
        p.freed += 1
        p.changed = g.now
        _all_due(f, g.now)
    if g.waiting > 0:
        if np.floor(g.now / p.cycle + 1e-9) * p.cycle == g.now:
            _cycle(s, q, f)
        if g.waiting > 0:
            _next_cycle(s, f)


@compiled
def run(s, q, f, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants, or to the end. Returns as `step` does."""
    return loop(
        s, (q, f), until, steps, decide=decide, on_submit=on_submit, on_requeue=on_requeue, on_finish=freed,
        on_node_up=freed, on_node_down=on_node_down,
    )  # fmt: skip
