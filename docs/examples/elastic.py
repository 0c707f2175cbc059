"""A policy for elastic jobs: they shrink for those that wait, and grow into GPUs that are idle."""

from gpuctl.plugins import Parameter, PythonPolicy


class GrowAndShrink(PythonPolicy):
    """In order of submission, who does not fit is skipped; GPUs that are missing come from jobs that lose least by it."""

    name = "grow-and-shrink"
    title = "elastic jobs shrink so that waiting ones start, and grow into idle GPUs"
    source = "an example; growing by the largest gain in speed is that of Optimus (EuroSys 2018)"
    parameters = (Parameter("grow_every", 600.0, "seconds from one look at idle GPUs to the next", least=1.0),)

    def begin(self, view):
        self.every = self.params["grow_every"]

    def decide(self, view):
        for job in view.waiting:
            _ = view.start(job, "its gang") or self.start_small(view, job) or self.make_room(view, job)
        if view.round is not None and not view.waiting:
            self.grow(view)

    def start_small(self, view, job):
        """Start a job on what is free, where that is enough for it."""
        sizes = range(min(view.free, view.gpus[job] - 1), view.least[job] - 1, -1)
        return any(view.start(job, "fewer GPUs than its gang", gpus=gpus) for gpus in sizes)

    def make_room(self, view, job):
        """Take GPUs from jobs that run on more than their least, one after the other, until the job starts."""
        suits = {node for node in range(len(view.nodes)) if view.suits(job, node)}
        size = {other: view.held(other) for other in view.running if suits.issuperset(view.placement(other))}
        missing = view.least[job] - sum(view.free_on(node) for node in suits)
        if sum(size[other] - view.least[other] for other in size) < missing:
            return False
        for _ in range(missing):
            loss = {j: view.speed(j, n) - view.speed(j, n - 1) for j, n in size.items() if n > view.least[j]}
            size[min(loss, key=loss.get)] -= 1
        for other, gpus in size.items():
            if gpus < view.held(other):
                view.resize(other, gpus, "another job waits")
        return view.start(job, "on its least", gpus=view.least[job])

    def grow(self, view):
        """Give idle GPUs, one after the other, to the jobs that gain most speed by them."""
        size = {job: view.held(job) for job in view.running}
        for _ in range(view.free):
            gains = {job: view.speed(job, n + 1) - view.speed(job, n) for job, n in size.items() if n < view.most[job]}
            best = max(gains, key=gains.get, default=None)
            if best is None or gains[best] <= 0:
                break
            size[best] += 1
        for job, gpus in size.items():
            if gpus > view.held(job):
                view.resize(job, gpus, "idle GPUs")
