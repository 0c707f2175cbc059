"""A packer: waiting jobs go beside running ones, at the same time where that pays, else by turns."""

from gpuctl.plugins import Parameter, PythonPolicy


class PackOrTurn(PythonPolicy):
    """First come, first served; whom no GPUs are free for shares some, and leaves them once others are idle."""

    name = "pack-or-turn"
    title = "waiting jobs share GPUs with running ones, packed where that is faster than taking turns"
    source = "an example; turns and packing as Gandiva (OSDI 2018) has them, decided by a table of pairs"
    parameters = (
        Parameter("most", 2.0, "jobs on a GPU", least=1.0, most=8.0),
        Parameter("pays", 1.1, "speeds of two packed jobs, added up, from which on they are packed"),
        Parameter("settle_every", 600.0, "seconds from one look at idle GPUs to the next", least=1.0),
    )

    def begin(self, view):
        self.every = self.params["settle_every"]

    def decide(self, view):
        for job in view.waiting:
            if not (view.start(job, "free") or self.share(view, job)):
                break
        if view.round is not None and not view.waiting:
            self.spread(view)

    def share(self, view, job):
        """Put a waiting job on the GPUs where it and those that run there are fastest together."""
        hosts = []
        for host in view.running:
            partners = view.colocated(host)
            own, room = view.host(host) is None, len(partners) + 1 < self.params["most"]
            if own and room and view.held(host) >= view.gpus[job]:
                together = min(self.together(view, job, other) for other in [host, *partners])
                # by turns the two of them are as fast as one, but for the switch
                hosts.append((max(together, 1.0), -len(partners), -host))
        for worth, _, host in sorted(hosts, reverse=True):
            if worth >= self.params["pays"] and view.share(job, -host, "faster together"):
                return True
            if view.share(job, -host, "by turns", sliced=True):
                return True
        return False

    def together(self, view, job, other):
        """Speeds of two jobs packed on the same GPUs, added up."""
        speeds = view.pair_speed(job, other), view.pair_speed(other, job)
        return sum(speeds) if min(speeds) > 0 else 0.0

    def spread(self, view):
        """Let jobs on others' GPUs go to idle ones, the largest that fits first."""
        guests = [job for job in view.running if view.host(job) is not None]
        for job in sorted(guests, key=lambda job: (-view.held(job), job)):
            if view.held(job) <= view.free:
                view.migrate(job, reason="idle GPUs")
