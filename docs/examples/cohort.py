"""Queues that lend one another what they do not use: quotas, borrowing, reclaim and priorities, as Kueue has them."""

from bisect import insort

from gpuctl.plugins import PythonPolicy


class Cohort(PythonPolicy):
    """Each queue may borrow what others leave of their quotas, and takes its own back by preemption."""

    name = "cohort"
    title = "queues borrow from each other, reclaim their quotas, and preempt by priority"
    source = "an example, after Kueue: ClusterQueues of one cohort, StrictFIFO, reclaimWithinCohort: Any"
    preempts = True

    def begin(self, view):
        self.lines, self.leaving = {}, set()

    def on_submit(self, view, job):
        insort(self.lines.setdefault(view.queue[job], []), (-view.priority(job), view.submit[job], job))

    def on_requeue(self, view, job):
        self.leaving.discard(job)
        self.on_submit(view, job)

    def decide(self, view):
        heads = {queue for queue, line in self.lines.items() if line}
        while heads:
            unused = {queue: view.quota[queue] - view.queue_used(queue) for queue in range(len(view.quota))}
            # those that need not borrow go first, then by priority, then by age
            queue = min(heads, key=lambda q: (view.gpus[self.lines[q][0][-1]] > unused[q], self.lines[q][0]))
            job = self.lines[queue][0][-1]
            borrows = view.gpus[job] > unused[queue]
            lent = sum(unused.values()) >= view.gpus[job] and view.start(job, "borrowed" if borrows else "in its quota")
            if lent or (not self.leaving and self.make_room(view, job, {} if borrows else unused)):
                self.lines[queue].pop(0)
            if not self.lines[queue] or self.lines[queue][0][-1] == job:
                heads.discard(queue)

    def make_room(self, view, job, unused):
        """Stop as few jobs as it takes: of queues that borrow, then less urgent ones of the job's own."""
        own, urgency, missing, chosen = view.queue[job], view.priority(job), view.gpus[job] - view.free, []
        over = {queue: -gpus for queue, gpus in unused.items() if gpus < 0}
        victims = [j for j in view.running if (q := view.queue[j]) in over or (q == own and view.priority(j) < urgency)]
        for j in sorted(victims, key=lambda j: (view.queue[j] == own, view.priority(j), view.ran(j))):
            if view.queue[j] == own or over[view.queue[j]] > 0:
                chosen.append(j)
                missing -= view.held(j)
                over[view.queue[j]] = over.get(view.queue[j], 0) - view.held(j)
        if missing > 0 or not view.fits(job, chosen):
            return False
        for j in chosen[::-1]:
            fewer = [other for other in chosen if other != j]
            chosen = fewer if view.fits(job, fewer) else chosen
        for j in chosen:
            if view.preempt(j, "a more urgent job" if view.queue[j] == own else "its quota is wanted back"):
                self.on_submit(view, j)
        self.leaving = {j for j in chosen if view.state(j) == "other"}
        return view.start(job, "room was made")
