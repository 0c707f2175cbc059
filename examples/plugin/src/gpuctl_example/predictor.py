"""A predictor of run times: a job runs as long as the last one of its user and name."""

from __future__ import annotations

from gpuctl.plugins import Job, Predictor


class SameAgain(Predictor):
    """Says of a job what the last ended one of the same user and name ran; nothing where there is none."""

    name = "same-again"
    title = "The run time of the last ended job of the same user and name."

    def __init__(self) -> None:
        self.last: dict[tuple[str, str], float] = {}

    def ended(self, job: Job, run_s: float) -> None:
        """Remember how long it ran."""
        self.last[job.user, job.name] = run_s

    def predict(self, job: Job) -> float | None:
        """Seconds, or None for a user's first job of a name."""
        return self.last.get((job.user, job.name))
