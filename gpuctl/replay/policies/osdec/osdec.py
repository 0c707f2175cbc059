"""OSDEC in a replay: on-demand jobs first, and deferrable ones, slot by slot, in the leftover capacity."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import literal, note
from gpuctl.core.numbers import number
from gpuctl.core.suggestions import meant
from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.contract.python_policy import PythonPolicy, PythonProgram
from gpuctl.replay.policies.osdec import slot_kernel as kernel
from gpuctl.replay.policies.osdec.deferral_windows import DAY_S, LONGEST_S, SHARE, SLOT_S, hashed, put_off, slots_of
from gpuctl.replay.policies.osdec.forecasts import DAYS, QUANTILES, quantile
from gpuctl.replay.policies.osdec.net_weights import read_weights

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.replay.contract.view import View
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Workload

RULES = {"asap": kernel.ASAP, "latest": kernel.LATEST, "quantile": kernel.QUANTILE}
ON_DEMAND = "on demand"


class Osdec(PythonPolicy):
    """On-demand jobs start in order and take GPUs from deferrable ones, which start at the beginning of slots."""

    name = "osdec"
    title = "on-demand jobs first; deferrable ones start in slots, if forecasts or a trained rule find room for them"
    source = (
        "OSDEC, arXiv 2406.01047, of which only the abstract was read: jobs of fixed length that start irrevocably in "
        "capacity left by on-demand jobs; slots, windows, forecasts, the rules, evictions and the learned net: ours"
    )
    oracle = True
    preempts = True
    always = True
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("rule", "quantile", "when a deferrable job that fits starts, without a model", tuple(RULES)),
        Parameter("quantile", 50.0, "percentile of the forecast that rule quantile uses", most=100.0),
        Parameter("model", "", "folder of a learned rule, as --model; it replaces rule"),
        Parameter("slot", float(SLOT_S), "seconds of a slot", least=60.0, most=DAY_S),
        Parameter(
            "share", float(SHARE), "percentage of jobs of at most 24 h that are deferrable, by a hash", most=100.0
        ),
        Parameter("queue", "", "queue of the deferrable jobs, instead of share"),
        Parameter("evict", "newest", "which run on-demand jobs end first", ("newest", "smallest-loss")),
    )

    def program(self, workload: Workload, cluster: Cluster, settings: Settings, state: State) -> PythonProgram:
        """See `Policy.program`."""
        wanted = str(self.params["queue"])
        if wanted and wanted not in workload.queues:
            raise UsageError(
                f"osdec: queue={wanted[:60]}: no job is in a queue of that name", hint=meant(wanted, workload.queues)
            )
        if wanted:
            marked = [wanted == workload.queues[queue] for queue in workload.queue.tolist()]
        else:
            marked = [hashed(job, float(self.params["share"])) for job in workload.ids]
        self.marked = marked
        self.every = float(self.params["slot"])
        made: Any = super().program(workload, cluster, settings, state)
        return _Program(self, made._view)

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        model = str(self.params["model"])
        self.total = sum(view.nodes)
        self.season = max(1, round(DAY_S / self.every))
        self.per_cent = int(self.params["quantile"])
        c = [0] * kernel.COUNTERS
        c[kernel.TOTAL], c[kernel.SEASON] = self.total, self.season
        c[kernel.RULE] = kernel.NET if model else RULES[str(self.params["rule"])]
        w, b, v, v0 = read_weights(Path(model)) if model else (np.zeros(0),) * 4
        self.s = SimpleNamespace(
            leftover=[], past=[[] for _ in QUANTILES], own=[], load=[], c=c, f=[0.0] * kernel.FEATURES,
            earliest={}, latest={}, gpus={}, slots={}, w=w, b=b, v=v, v0=v0,
        )  # fmt: skip
        self.line: set[int] = set()  # deferrable jobs that wait
        self.runs: dict[int, tuple[float, int]] = {}  # deferrable ones that run: since when, and in which slot
        self.queue: list[int] = []  # on-demand jobs that wait
        self.used: dict[int, int] = {}  # GPUs of those that run
        self.held = self.peak = 0
        self.evicted: dict[int, int] = {}
        self.counts = dict.fromkeys(("jobs", "done", "missed", "failed", "evictions"), 0)
        self.gpu_s = {"useful": 0.0, "lost": 0.0}
        self.waited_s = 0.0

    # ---- events

    def on_submit(self, view: View, job: int) -> None:
        """See docs/how-to/write-a-policy.md."""
        run_s = view.duration(job)
        if not self.marked[job] or run_s > LONGEST_S:
            self.queue.append(job)
            return
        s = self.s
        s.earliest[job] = math.ceil(view.now / self.every)
        s.latest[job] = s.earliest[job] + put_off(run_s, self.every)
        s.gpus[job], s.slots[job] = view.gpus[job], slots_of(run_s, self.every)
        self.line.add(job)
        self.counts["jobs"] += 1

    def on_finish(self, view: View, job: int) -> None:
        """See docs/how-to/write-a-policy.md."""
        if job in self.runs:
            self.counts["done"] += 1
            self.gpu_s["useful"] += view.gpus[job] * view.duration(job)
            self.waited_s += max(self.runs[job][0] - self.every * self.s.earliest[job], 0.0)
            self._off(view, job)
        else:
            self.held -= self.used.pop(job, 0)

    def on_requeue(self, view: View, job: int) -> None:
        """See docs/how-to/write-a-policy.md."""
        if job in self.s.latest:
            if job in self.runs:
                self._wait_again(view, job)
            return
        self.held -= self.used.pop(job, 0)
        if job not in self.queue:
            self.queue.append(job)

    def decide(self, view: View) -> None:
        """See `Listener.decide`."""
        while self.queue and self._make_way(view, self.queue[0]):
            job = self.queue.pop(0)
            self.used[job] = view.gpus[job]
            self.held += view.gpus[job]
        wanted = self.held + sum(view.gpus[job] for job in self.queue)
        # the start of a slot is a round only if a job waited or ran before
        slot = math.floor(view.now / self.every + 1e-9)
        if slot >= len(self.s.leftover):
            self._new_slot(slot, wanted)
        self.peak = max(self.peak, wanted)
        if abs(view.now - slot * self.every) < 1e-6:
            self._offer(view, slot)

    # ---- on-demand jobs

    def _make_way(self, view: View, job: int) -> bool:
        """Start an on-demand job; if it does not fit, end deferrable runs until it does, if possible."""
        if view.start(job, ON_DEMAND):
            return True
        nodes = [k for k in range(len(view.nodes)) if view.suits(job, k)]
        on = {run: sum(view.placement(run).get(k, 0) for k in nodes) for run in self.runs}
        if sum(map(view.free_on, nodes)) + sum(on.values()) < view.gpus[job]:
            return False
        for run in self._victims(view):
            before = view.remaining(run)
            if on[run] and view.preempt(run, "on-demand jobs need its GPUs", mode="abort"):
                self.counts["evictions"] += 1
                self.gpu_s["lost"] += view.gpus[run] * (view.remaining(run) - before)
                self.evicted[run] = self.evicted.get(run, 0) + 1
                self._wait_again(view, run)
                if view.start(job, ON_DEMAND):
                    return True
        return False

    def _victims(self, view: View) -> list[int]:
        if self.params["evict"] == "newest":
            return sorted(self.runs, key=lambda run: (-self.runs[run][0], -run))
        return sorted(self.runs, key=lambda run: (view.gpus[run] * (view.now - self.runs[run][0]), -run))

    # ---- deferrable jobs

    def _off(self, view: View, job: int) -> None:
        """Remove a deferrable job that stopped; its later slots are free."""
        load, (_, first) = self.s.load, self.runs.pop(job)
        now = math.ceil(view.now / self.every)
        for x in range(max(first, now), first + self.s.slots[job]):
            load[x] -= self.s.gpus[job]

    def _wait_again(self, view: View, job: int) -> None:
        self._off(view, job)
        self.s.slots[job] = slots_of(view.remaining(job), self.every)
        self.line.add(job)

    def _new_slot(self, h: int, wanted: int) -> None:
        """Record the leftover capacity of past slots and of this one."""
        s = self.s
        last = len(s.leftover) - 1
        if last >= 0:
            s.leftover[last] = max(0, self.total - self.peak)
            self._note_past(last)
        for k in range(last + 1, h):
            # nothing ran and nothing waited
            s.leftover.append(self.total)
            self._note_past(k)
        s.leftover.append(max(0, self.total - wanted))
        self._note_past(h)
        self.peak = wanted

    def _note_past(self, slot: int) -> None:
        s = self.s
        values = np.array(s.leftover[slot % self.season : slot + 1 : self.season][-DAYS:])
        for table, per_cent in ((s.own, self.per_cent), *zip(s.past, QUANTILES, strict=True)):
            del table[slot:]
            table.append(quantile(values, per_cent))

    def _offer(self, view: View, h: int) -> None:
        s = self.s
        s.c[kernel.WAITING_GPUS] = sum(s.gpus[job] for job in self.line)
        longest = max((s.slots[job] for job in self.line), default=0)
        s.load.extend([0] * (h + longest + 1 - len(s.load)))
        for job in sorted(self.line, key=lambda job: (s.latest[job], job)):
            fits = s.load[h] + s.gpus[job] <= s.leftover[h] and h <= s.latest[job]
            if fits and kernel.starts(s, h, job) and view.start(job, "there is room for its run"):
                self.line.remove(job)
                self.runs[job] = view.now, h
                for x in range(h, h + s.slots[job]):
                    s.load[x] += s.gpus[job]
        for job in sorted(self.line):
            if s.latest[job] <= h and view.reject(job, "its window has closed"):
                self.line.remove(job)
                self.counts["failed" if job in self.evicted else "missed"] += 1

    def summary(self) -> tuple[Note, ...]:
        """Results of the deferrable jobs so far."""
        counts, hour = self.counts, 3600.0
        if not counts["jobs"]:
            return (note("no job is deferrable, by --param osdec.queue or osdec.share"),)
        left = self.every * sum(self.s.leftover)
        return (
            note(
                "{done:,} of {jobs:,} deferrable job{jobs||s} ran to their end in leftover capacity: {useful} "
                "GPU-h, {share} % "
                "of it, after a mean wait of {wait} h from the opening of their windows; {evictions:,} evictions "
                "lost {lost} GPU-h; {missed:,} never started in time, {failed:,} were evicted and did not start again",
                done=counts["done"], jobs=counts["jobs"], evictions=counts["evictions"], missed=counts["missed"],
                failed=counts["failed"], useful=literal(number(self.gpu_s["useful"] / hour)),
                lost=literal(number(self.gpu_s["lost"] / hour)),
                share=literal(number(100 * self.gpu_s["useful"] / left if left else 0.0)),
                wait=literal(number(self.waited_s / max(counts["done"], 1) / hour)),
            ),
        )  # fmt: skip


class _Program(PythonProgram):
    """Adds a note on the results of the deferrable jobs."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """For `Outcome.notes`."""
        found: Any = self._policy
        return tuple(found.summary())

    def copy(self) -> Any:
        """See `PythonProgram.copy`."""
        twin = super().copy()
        return _Program(twin._policy, twin._view)
