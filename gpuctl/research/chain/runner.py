"""Drive a chain on a real Slurm: check the queue, decide, write the intention down, submit.

After a kill at any time, the next run continues. Each job has a unique name; if a journal ends between an intention and
its outcome, gpuctl looks that name up in Slurm before it submits again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.research.chain import journal as log
from gpuctl.research.chain.slurm_calls import Ended, RefusedError, UnsureError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuctl.research.chain.chain_file import ChainSpec
    from gpuctl.research.chain.journal import Journal
    from gpuctl.research.chain.queue_now import QueuedJob
    from gpuctl.research.chain.slurm_calls import Slurm

AS_WANTED = frozenset({"COMPLETED", "TIMEOUT"})
"""Final states after which a chain continues."""

ENDS = AS_WANTED | {
    "FAILED", "CANCELLED", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED",
}  # fmt: skip

MOST_TRIES = 5
"""The chain stops after this many lost submissions of a job."""


@dataclass(frozen=True)
class Decision:
    """Whether to submit the next job.

    Attributes:
        submit: whether to submit now.
        depend: whether the job depends on the end of the previous one.
        why: the reason in words.
    """

    submit: bool
    depend: bool
    why: str


@dataclass
class Runner:
    """A chain, its journal and Slurm.

    Attributes:
        spec: the wanted chain.
        slurm: access to Slurm.
        journal: the journal.
        decide: decides whether to submit a successor, from the queue, P and the time.
        clock: returns seconds since 1970.
        settle_s: seconds for which an unsure job must be absent from Slurm before resubmission.
        dry: decide and report; submit, cancel and write nothing.
        report: called with each event.
        absent_since: first look that did not find the unsure submission.
        last_message: the last decision to wait, to report it once.
    """

    spec: ChainSpec
    slurm: Slurm
    journal: Journal
    decide: Callable[[Sequence[QueuedJob], QueuedJob, float], Decision]
    clock: Callable[[], float]
    settle_s: float = 60.0
    dry: bool = False
    report: Callable[[str], None] = lambda _: None
    absent_since: float | None = None
    last_message: str = ""

    def step(self) -> bool:
        """Check once and act; returns whether the chain is over.

        Raises:
            InputError: Slurm does not answer; nothing was done.
            RefusedError: Slurm refuses the job; the chain has stopped.
        """
        state = self.journal.state
        if state.over:
            return True
        queue = self.slurm.queue()
        if state.open is not None:
            self._settle(queue, state.open)
            return False
        self._cancel_doubles(queue)
        if not state.jobs:
            self._submit(1, Decision(True, False, "the first job of the chain"), None)
            return False
        return self._go_on(queue)

    # ---- the outcome of a submission

    def _settle(self, queue: Sequence[QueuedJob], number: int) -> None:
        """Find out whether a job was submitted if the journal has only the intention."""
        name = self._name(number)
        since = self._last(log.SUBMITTING)["at_s"]
        found = [job.job for job in queue if name in {job.name, job.comment}]
        if not found:
            try:
                found = [job.job for job in self.slurm.accounting(name=name, since_s=since) if job.name == name]
            except InputError as error:
                self._say(f"job {number} may or may not be submitted, and sacct does not answer: {error.message}")
                return
        if found:
            self.absent_since = None
            self._write(log.SUBMITTED, number=number, job=min(found, key=int), found=True)
            return
        now = self.clock()
        self.absent_since = now if self.absent_since is None else self.absent_since
        if now - self.absent_since < self.settle_s:
            self._say(f"job {number} may or may not be submitted: asking again for {self.settle_s:g} s")
            return
        self.absent_since = None
        if sum(
            event["event"] == log.SUBMITTING and event["number"] == number for event in self.journal.state.events
        ) >= (MOST_TRIES):
            self._write(log.STOPPED, why=f"Slurm took none of {MOST_TRIES} submissions of job {number}")
            return
        before = self._find(queue, number - 1) if number > 1 else None
        depend = bool(self._last(log.SUBMITTING).get("after"))
        self._submit(number, Decision(True, depend and before is not None, "Slurm did not get it"), before)

    def _cancel_doubles(self, queue: Sequence[QueuedJob]) -> None:
        """Check that no job exists twice: Slurm may have executed a seemingly lost request late."""
        for number, job in self.journal.state.jobs.items():
            name = self._name(number)
            for other in queue:
                if name in {other.name, other.comment} and other.job != job and (other.pending or other.holds):
                    self._write(log.NOTED, text=f"job {other.job} is job {number} a second time: cancelled")
                    self._cancel(other.job)

    # ---- the next action

    def _go_on(self, queue: Sequence[QueuedJob]) -> bool:
        jobs, ended = self.journal.state.jobs, dict(self.journal.state.ended)
        for number in sorted(jobs):
            end = ended.get(number)
            if end is None:
                end = self._end(queue, number)
                if end is None:
                    break
                self._write(log.ENDED, number=number, job=jobs[number], state=end)
                ended[number] = end
            # also for an end in the journal: the run that wrote it may have been killed before the stop
            if end not in AS_WANTED and not self.spec.go_on:
                return self._stop(queue, number, end)
        last = max(jobs)
        if last == self.spec.jobs:
            if last in ended:
                self._write(log.DONE)
            return last in ended
        if last in ended:
            self._submit(last + 1, Decision(True, False, f"job {last} has ended: {ended[last]}"), None)
            return False
        p = self._find(queue, last)
        if p is not None and p.holds and p.start_s is not None:
            decision = self.decide(queue, p, self.clock())
            if decision.submit:
                self._submit(last + 1, decision, p)
            else:
                self._say(f"job {last + 1} waits: {decision.why}")
        return False

    def _end(self, queue: Sequence[QueuedJob], number: int) -> str | None:
        """How a job ended; None: not known to have ended. Absence from the queue is no end."""
        p = self._find(queue, number)
        if p is not None:
            return next(iter(sorted(p.states & ENDS)), None) if not (p.pending or p.holds) else None
        job = self.journal.state.jobs[number]
        try:
            records: list[Ended] = self.slurm.accounting(job=job, since_s=self.journal.state.events[0]["at_s"])
        except InputError as error:
            self._say(f"job {number} is not in the queue, and sacct does not answer: {error.message}")
            return None
        record = next((each for each in records if each.job == job), None)
        if record is None:
            self._say(f"job {number} ({job}) is neither in the queue nor in the accounting: how it ended is not known")
            return None
        return record.state if record.state in ENDS else None

    def _stop(self, queue: Sequence[QueuedJob], number: int, state: str) -> bool:
        """Cancel jobs that wait for a failed job, then stop; jobs gone from Slurm cannot be cancelled."""
        for other, job in self.journal.state.jobs.items():
            seen = self._find(queue, other)
            if other > number and seen is not None and (seen.pending or seen.holds):
                self._write(log.NOTED, text=f"job {other} ({job}) is cancelled: job {number} has failed")
                self._cancel(job)
        self._write(log.STOPPED, why=f"job {number} ended as {state}")
        return True

    def _submit(self, number: int, decision: Decision, before: QueuedJob | None) -> None:
        name = self._name(number)
        after = before.job if decision.depend and before is not None else None
        if self.dry:
            self._say(f"job {number} would be submitted: {decision.why}")
            return
        options = [*self.spec.options, f"--job-name={name}", f"--comment={name}"]
        options += [f"--dependency=afterany:{after}"] if after else []
        self._write(log.SUBMITTING, number=number, name=name, why=decision.why, after=after)
        try:
            job = self.slurm.submit(options, self.spec.script, self.journal.lock)
        except UnsureError as error:
            self._write(log.NOTED, text=error.message)
        except RefusedError as error:
            self._write(log.STOPPED, why=error.message)
            raise
        else:
            self._write(log.SUBMITTED, number=number, job=job)

    # ----

    def _name(self, number: int) -> str:
        return log.token(self.spec.name, self.journal.state.chain, number)

    def _find(self, queue: Sequence[QueuedJob], number: int) -> QueuedJob | None:
        job = self.journal.state.jobs.get(number)
        return next((each for each in queue if each.job == job), None)

    def _last(self, event: str) -> log.Event:
        return next(each for each in reversed(self.journal.state.events) if each["event"] == event)

    def _cancel(self, job: str) -> None:
        if not self.dry:
            self.slurm.cancel(job)

    def _write(self, event: str, **more: object) -> None:
        line = " ".join([event, *(f"{key}={value}" for key, value in more.items() if value is not None)])
        if self.dry:
            self._say(f"would be done: {line}")
            return
        self.journal.write(event, **more)
        self._say(line)

    def _say(self, text: str) -> None:
        if text != self.last_message:
            self.report(text)
        self.last_message = text
