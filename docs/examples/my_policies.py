"""Two policies of one's own; see docs/how-to/write-a-policy.md."""

from collections import Counter

from gpuctl.plugins import PythonPolicy, RankPolicy


class SmallFirst(RankPolicy):
    """The smallest gang first; of equal ones, that of the user who has submitted least often so far."""

    name = "small-first"
    title = "the smallest gang first, then rare users"
    placement = "consolidate"

    def begin(self):
        self.often = Counter()

    def rank(self, jobs):
        self.often.update(jobs.user)
        return [gpus - 1 / (1 + self.often[user]) for gpus, user in zip(jobs.gpus, jobs.user)]


class MakeRoom(PythonPolicy):
    """First come, first served; a job that has waited an hour for its first start may stop the longest runner.

    Each job may stop one other, and is stopped once at most: so no two take turns without getting further.
    """

    name = "make-room"
    title = "in order of submission, but an hour's wait may stop the longest runner"
    preempts = True

    def begin(self, view):
        self.made_room, self.stopped = set(), set()

    def decide(self, view):
        for job in view.waiting:
            if view.start(job, "oldest"):
                continue
            if view.ran(job) > 0 or job in self.made_room:
                continue
            if view.now - view.submit[job] >= 3600:
                long = [j for j in view.running if view.gpus[j] >= view.gpus[job] and view.ran(j) > 3600]
                others = [j for j in long if j not in self.stopped]
                if others:
                    longest = max(others, key=view.ran)
                    self.made_room.add(job)
                    self.stopped.add(longest)
                    if view.preempt(longest, "an older job waits"):
                        view.start(job, "waited an hour")
            else:
                view.wake(job, view.submit[job] + 3600)
            break
