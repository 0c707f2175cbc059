"""The scheduler of the Philly clusters, as the ATC 2019 analysis describes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.replay.contract.policy import PATIENCE, Parameter, Policy
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.order.waiting_kernel import empty
from gpuctl.replay.policies.philly import philly_kernel, prerun, rules_kernel
from gpuctl.replay.policies.philly.places_kernel import DEDICATE, PLACES
from gpuctl.replay.policies.philly.rules_kernel import RELAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.compiled.jit import Loop
    from gpuctl.replay.engine.program import Program
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Ints, Workload


class Philly(Policy):
    """Queues within their quotas go first; gangs are gathered on few nodes, and relax locality each time."""

    name = "philly"
    title = "quotas for virtual clusters, idle GPUs lent and taken back, gangs gathered with less and less locality"
    source = (
        "Jeon et al., ATC 2019 (arXiv 1901.05758), section 2; its constants are recalled, not checked, and the "
        "number of "
        "attempts per level is assumed"
    )
    preempts = True
    run: ClassVar[Loop | None] = philly_kernel.run
    parameters = (
        Parameter("acquire", 150.0, "seconds that GPUs are held while a gang is gathered; 0: never held"),
        Parameter("backoff", 120.0, "seconds from a failed attempt to the next one"),
        Parameter("tries", 3.0, "failed attempts after which a gang requests less locality: fewest nodes of one "
                  "rack, "
                  "one rack, anywhere", least=1.0),
        Parameter("relax", "tries", "when a gang gives up locality: after failed attempts (tries); retry: "
                  "never, it gathers, backs off and tries again; never: never, it waits for the fewest nodes without "
                  "gathering; time: after relax_after per level; adaptive: when the wait expected for locality exceeds "
                  "the run time that spreading is expected to cost. The last three do not gather",
                  choices=RELAX),
        Parameter("relax_after", 1800.0, "seconds that a gang requires each level of locality, for relax=time; 0: it "
                  "starts anywhere at once"),
        Parameter("rack_after", -1.0, "seconds that it requires one rack, for relax=time; -1: relax_after", least=-1.0),
        Parameter("interval", 0.0, "seconds between passes at which gangs give up locality, in addition to passes "
                  "when jobs arrive and end, for relax=time; 0: on the second"),
        Parameter("dedicate", "none", "small: jobs of at most small GPUs share no node with larger ones; node: no "
                  "two jobs share a node", choices=DEDICATE),
        Parameter("small", 1.0, "GPUs of the largest small job, for dedicate=small", least=1.0),
        Parameter("defragment", False, "move jobs off a node for a gang that waits for locality alone, if "
                  "that costs less GPU time than the gang's expected wait; at most once per minute"),
        Parameter("worth", 1.0, "GPU-seconds of waiting that a migration must save per GPU-second that it costs"),
        Parameter("busy", 0.9, "share of all GPUs in use from which on lent GPUs are taken back", most=1.0),
        Parameter("borrow", True, "queues may use idle GPUs beyond their quotas"),
        Parameter("lend", 1.0, "share of all GPUs in use, the job's own included, up to which a job may start beyond "
                  "its queue's quota", most=1.0),
        Parameter("take_back", True, "lent GPUs are taken back by preemption"),
        Parameter("order", "used", "used: queues within their quotas first, the one that has used least of its quota "
                  "before others; queued: jobs in the order in which they were queued, whether within their quota or "
                  "beyond it", choices=philly_kernel.ORDER),
        Parameter("places", "tight", "tight: a gang goes to the fullest node that holds it, else to the rack with "
                  "least room; racks: to the rack in which it needs fewest nodes, the first of several",
                  choices=PLACES),
        Parameter("requeue", 0.0, "seconds from a failure until the job is queued again"),
        PATIENCE,
        *prerun.PARAMETERS,
    )  # fmt: skip

    def asks_why(self) -> bool:
        """See `Policy.asks_why`."""
        return bool(self.params["prerun"] > 0 or self.params["retry"] > 0)

    def extended(self, cluster: Cluster) -> Cluster:
        """See `Policy.extended`."""
        return prerun.reserve_pool(cluster, self.params)

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> Program:
        """See `Policy.program`."""
        del settings
        state.g.patience = int(self.params["patience"])
        levels = rules_kernel.LEVELS
        jobs = state.jobs
        kinds, kind = np.unique(np.stack([jobs.gpus.astype(np.uint64), jobs.mask]), axis=1, return_inverse=True)
        kind = kind.reshape(-1)
        pairs, pair = np.unique(np.stack([jobs.queue, kind]), axis=1, return_inverse=True)
        pair = pair.reshape(-1)
        queue = empty(pair * levels, pairs.shape[1] * levels)
        rank = np.empty(workload.size)
        rank[np.lexsort((np.arange(workload.size), workload.submit))] = np.arange(workload.size)
        queue.key[:] = rank
        queues = state.queue_used.size
        p = records(1, philly_kernel.PHILLY)
        p.acquire, p.backoff, p.busy = self.params["acquire"], self.params["backoff"], self.params["busy"]
        p.tries, p.borrow = int(self.params["tries"]), self.params["borrow"]
        p.lend, p.requeue, p.take_back = self.params["lend"], self.params["requeue"], self.params["take_back"]
        p.order = philly_kernel.ORDER.index(self.params["order"])
        quota = np.full(queues, np.inf)
        quota[: cluster.quota.size] = cluster.quota[:queues]
        gangs = philly_kernel.Gangs(
            p=p,
            quota=quota,
            level=workload.size,
            tries=workload.size,
            queue_of=np.repeat(pairs[0], levels),
            kind_of=(pairs[1][:, None] * levels + np.arange(levels)).reshape(-1),
            bad=np.full(kinds.shape[1] * levels, -1),
            order=_by_first_job(np.asarray(jobs.queue, np.int64), queues),
            first=np.full(queues, -1),
            gatherer=np.full(queues, -1),
            hold=(queues, state.nodes.size),
            held=queues,
            since=queues,
            lent=workload.size + cluster.total_gpus + 64,
        )
        rules = self._rules(workload, cluster, state, kinds.shape[1])
        catcher, notes = prerun.catcher(workload, cluster, state, self.params)
        return CompiledProgram(philly_kernel.run, (queue, gangs, rules, catcher), notes=notes)

    def _rules(self, workload: Workload, cluster: Cluster, state: State, kinds: int) -> rules_kernel.Rules:
        """Memory of the rules for locality, nodes and migrations."""
        p = records(1, rules_kernel.RULES)
        p.relax, p.dedicate = RELAX.index(self.params["relax"]), DEDICATE.index(self.params["dedicate"])
        p.after, p.small, p.worth = self.params["relax_after"], self.params["small"], self.params["worth"]
        p.rack_after = p.after if self.params["rack_after"] < 0 else self.params["rack_after"]
        p.interval, p.places = self.params["interval"], PLACES.index(self.params["places"])
        p.defragment, p.looked = self.params["defragment"], -np.inf
        sizes, size = np.unique(workload.gpus, return_inverse=True)
        users = len(workload.users) + 1
        p.classes = sizes.size
        # memory of only two rules costs nothing under the others
        used = bool(p.defragment[0]) or self.params["relax"] == "adaptive"
        n, nodes = (workload.size + 1, state.nodes.size) if used else (1, 1)
        return rules_kernel.Rules(
            p=p,
            since=np.full(n, np.nan),
            spent=n,
            exposed=kinds,
            granted=kinds,
            ended=(users * sizes.size + sizes.size + 1, 2),
            base=np.zeros(workload.size, np.int64) if self.params["relax"] == "tries" else _best_levels(cluster, state),
            who=np.where(workload.user < 0, users - 1, workload.user) * sizes.size + size.reshape(-1),
            colour=state.nodes.size,
            running=n,
            listed=n,
            victims=n,
            ends=nodes + 1,
            at=nodes,
            line=_by_number(cluster.nodes, state.nodes.size),
            racks=_by_number(cluster.racks, state.rack_free.shape[1]),
            request_s=workload.size if self.params["relax"] == "time" else 1,
            due=2 * workload.size + 1 if p.interval > 0 else 1,
        )


def _by_first_job(queue: Ints, count: int) -> Ints:
    """Queues in order of their first job, independent of names."""
    known, first = np.unique(queue, return_index=True)
    used = known[np.argsort(first)]
    return np.concatenate([used, np.setdiff1d(np.arange(count), used)]).astype(np.int64)


def _by_number(names: Sequence[str], size: int) -> Ints:
    """Positions of names in natural order, m2 before m10; unnamed ones last."""

    def key(at: int) -> list[tuple[int, str]]:
        return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", names[at])]

    return np.array([*sorted(range(min(len(names), size)), key=key), *range(len(names), size)], np.int64)


def _best_levels(cluster: Cluster, state: State) -> Ints:
    """The best level of each job in an empty cluster: a gang that no rack can hold waits for none."""
    gpus, mask = state.jobs.gpus, state.jobs.mask
    found = np.zeros(gpus.size, np.int64)
    kinds, kind = np.unique(np.stack([gpus.astype(np.uint64), mask]), axis=1, return_inverse=True)
    for number, (size, classes) in enumerate(kinds.T.tolist()):
        suit = (int(classes) >> state.nodes.cls.astype(object)) & 1 == 1
        caps, rack = cluster.gpus[suit.astype(bool)], cluster.rack[suit.astype(bool)]
        if not caps.size or caps.max() >= size:
            continue
        few = -(-int(size) // int(caps.max()))
        racks = [np.sort(caps[rack == one])[::-1] for one in np.unique(rack)]
        level = (
            0 if any(one[:few].sum() >= size for one in racks) else 1 if any(one.sum() >= size for one in racks) else 2
        )
        found[kind.reshape(-1) == number] = level
    return found
