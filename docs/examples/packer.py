"""A packer with its predictor: short jobs first, by what it has learned of run times, two on a GPU where that pays."""

from bisect import insort

from gpuctl.plugins import Parameter, PythonPolicy


class PredictAndPack(PythonPolicy):
    """The least predicted GPU-time first; who finds no free GPUs goes beside one job of its size."""

    name = "predict-and-pack"
    title = "the least predicted GPU-time first; pairs of jobs share GPUs where both stay fast; no preemption"
    source = "an example, after Lucid (ASPLOS 2023): its order, packing in pairs, and rolling estimates of run times"
    parameters = (Parameter("pays", 1.2, "speeds of two packed jobs, added up, from which on they are packed"),)

    def begin(self, view):
        self.lines, self.past = {}, {}

    def groups(self, view, job):
        """Whose run times say most of the job's, the nearest ones first."""
        return ((view.user[job], view.gpus[job]), (view.user[job],), ())

    def predict(self, view, job):
        """Seconds of run time: what was predicted for it, else the mean of the nearest jobs that have ended."""
        known = (self.past[group] for group in self.groups(view, job) if group in self.past)
        count, seconds = next(known, (1, 0.0))
        return seconds / count if view.predicted(job) is None else view.predicted(job)

    def on_submit(self, view, job):
        gpus = view.gpus[job]
        insort(self.lines.setdefault(gpus, []), (gpus * self.predict(view, job), view.submit[job], job))

    on_requeue = on_submit

    def on_finish(self, view, job):
        for group in self.groups(view, job):
            count, seconds = self.past.get(group, (0, 0.0))
            self.past[group] = count + 1, seconds + view.ran(job)

    def decide(self, view):
        heads = [(line[0], gpus) for gpus, line in self.lines.items() if line]
        while heads:
            (*_, job), gpus = best = min(heads)
            heads.remove(best)
            if view.start(job, "shortest", placement="consolidate") or self.pack(view, job):
                self.lines[gpus].pop(0)
                heads += [(line[0], gpus) for line in [self.lines[gpus]] if line]

    def pack(self, view, job):
        """Put a job beside the one of its size that both are fastest with."""
        alone = (j for j in view.running if view.gpus[j] == view.gpus[job] and not view.colocated(j))
        speeds = ((view.pair_speed(job, j) + view.pair_speed(j, job), -j) for j in alone)
        speed, other = max(speeds, default=(0.0, 0))
        return speed >= self.params["pays"] and view.share(job, -other, "packed")
