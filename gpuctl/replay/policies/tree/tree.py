"""Rules that choose running jobs, distilled from another policy by `gpuctl train tree` or written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import MOST_TABLE, read_whole
from gpuctl.core.path_checks import exists
from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.policies.tree.known import FEATURES, JobHistory, Jobs, rows_of
from gpuctl.trees.batch_rules import Judge
from gpuctl.trees.model import read_json, rules_of
from gpuctl.trees.rules import Rule, Rules, read_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpuctl.replay.contract.view import View

    Ints = NDArray[np.int64]

REASON = "first by the rules"
MADE_ROOM = "behind another job by the rules"


def read_rules(path: Path) -> Rules:
    """The rules of a folder of ``gpuctl train tree``, of a tree's ``.json``, or of a text file.

    Raises:
        InputError: there are none.
    """
    if path.is_dir():
        path /= "rules.txt"
    if path.suffix.lower() != ".json":
        return read_file(path, FEATURES)
    try:
        value = json.loads(read_whole(path, most=MOST_TABLE, hint="name a tree's JSON file, or rules as text"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON: {str(error)[:200]}", path=str(path)) from None
    return rules_of(read_json(value, FEATURES, str(path))[0], FEATURES)


class TreePolicy(PythonPolicy):
    """Jobs run in the order of the rules' shares; with ``preempt`` running jobs are also in that order."""

    name = "tree"
    title = "rules over information available without an oracle, distilled from another policy or written by hand"
    source = "ours; distilling a scheduler into a tree: arXiv 2405.19131, whose tree is of jobs of stages"
    preempts = True
    parameters = (
        Parameter("file", "", "rules: a folder of gpuctl train tree, a tree's .json, or text; none: all alike"),
        Parameter("preempt", False, "running jobs are also candidates, and lose their GPUs to those before them"),
        Parameter("quantum", 600.0, "least seconds that a job keeps its GPUs, and between two comparisons; preempt",
                  least=1.0),
    )  # fmt: skip

    def __init__(self, params: Mapping[str, str] | None = None) -> None:
        super().__init__(params)
        path = str(self.params["file"])
        if path and not exists(path):
            raise UsageError(f"tree: file={path[:200]}: no such file or folder", hint="gpuctl train tree makes one")
        rules = read_rules(Path(path)) if path else Rules(FEATURES, (Rule((), chosen=1, other=1),))
        self.judge = Judge(rules)

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        del view
        whole, real = np.zeros(0, np.int64), np.zeros(0)
        self.jobs = Jobs(real, real, whole, real, whole, whole, real, real, whole)
        self.ended = JobHistory()
        self.on: set[int] = set()
        self.since: dict[int, float] = {}

    def _grow(self, job: int) -> None:
        size = self.jobs.gpus.size
        if job >= size:
            more = max(job + 1, 2 * size, 64) - size
            for name, array in vars(self.jobs).items():
                setattr(self.jobs, name, np.append(array, np.zeros(more, array.dtype)))

    def on_submit(self, view: View, job: int) -> None:
        """See docs/how-to/write-a-policy.md."""
        self._grow(job)
        jobs = self.jobs
        jobs.submit[job], jobs.queued[job], jobs.gpus[job] = view.submit[job], view.now, view.gpus[job]
        jobs.limit[job], jobs.user[job], jobs.queue[job] = view.limit[job], view.user[job], view.queue[job]

    def on_requeue(self, view: View, job: int) -> None:
        """See docs/how-to/write-a-policy.md."""
        self._stopped(view, job)

    def on_finish(self, view: View, job: int) -> None:
        """See docs/how-to/write-a-policy.md."""
        self._stopped(view, job)
        self.ended.add(int(self.jobs.user[job]), int(self.jobs.gpus[job]), view.ran(job))

    def on_timer(self, view: View, number: int) -> None:
        """See docs/how-to/write-a-policy.md."""

    def _stopped(self, view: View, job: int) -> None:
        self.on.discard(job)
        jobs = self.jobs
        jobs.held[job], jobs.queued[job] = 0, view.now
        jobs.ran[job], jobs.served[job] = view.ran(job), view.attained(job)

    def decide(self, view: View) -> None:
        """See docs/how-to/write-a-policy.md."""
        waiting = [job for job in view.waiting if self.params["preempt"] or view.gpus[job] <= view.free]
        running = sorted(self.on) if self.params["preempt"] else []
        if not waiting:
            return
        who = np.array(sorted([*waiting, *running]), np.int64)
        order = who[self._order(view, who, running)].tolist()
        if not running:
            self._start_in_order(view, order)
        else:
            self._make_room(view, order)
        if self.params["preempt"] and view.waiting and self.on:
            view.timer(view.now + float(self.params["quantum"]))

    def _order(self, view: View, who: Ints, running: list[int]) -> Ints:
        """Places of candidates: by the rules, then by submission."""
        jobs = self.jobs
        for job in running:
            jobs.ran[job], jobs.served[job] = view.ran(job), view.attained(job)
        is_running = np.isin(who, np.array(running, np.int64))
        on = np.array(sorted(self.on), np.int64)
        rows = rows_of(view.now, jobs, who, is_running, on, free=view.free, ended=self.ended)
        return np.lexsort((who, jobs.submit[who], self.judge.places(rows)))

    def _start_in_order(self, view: View, order: list[int]) -> None:
        failed: set[int] = set()
        for job in order:
            gpus = view.gpus[job]
            if view.free == 0:
                return
            if gpus <= view.free and gpus not in failed and not self._start(view, job):
                failed.add(gpus)

    def _start(self, view: View, job: int) -> bool:
        if not view.start(job, REASON):
            return False
        self.on.add(job)
        self.jobs.held[job] = view.held(job)
        self.since[job] = view.now
        return True

    def _make_room(self, view: View, order: list[int]) -> None:
        """Run the first jobs in order, as many as fit; running jobs must make room for them."""
        pinned = [job for job in order if job in self.on and self._must_go_on(view, job)]
        budget = view.free + sum(int(self.jobs.held[job]) for job in self.on)
        chosen: list[int] = []
        for job in (*pinned, *(job for job in order if job not in set(pinned))):
            need = int(self.jobs.held[job]) if job in self.on else view.gpus[job]
            if need <= budget:
                chosen.append(job)
                budget -= need
        keep = set(chosen)
        victims = [job for job in order if job in self.on and job not in keep]
        for job in chosen:
            if job in self.on:
                continue
            while not self._start(view, job) and victims:
                self._stop(view, victims.pop())
        self._start_in_order(view, [job for job in order if job in view.waiting])

    def _must_go_on(self, view: View, job: int) -> bool:
        return view.now - self.since[job] < float(self.params["quantum"])

    def _stop(self, view: View, job: int) -> None:
        free_at_once = view.preempt(job, MADE_ROOM)
        if free_at_once or view.state(job) != "running":
            self._stopped(view, job)
