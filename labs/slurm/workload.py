"""What the Slurm lab runs: jobs of every important kind, and for each of them what is to be found in the accounting.

What is wanted is written down by whoever submits and meddles (`Wanted`), and by the jobs themselves (`Run`): none of it
is read from Slurm.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from labs.slurm.lab import Lab

PATIENCE_S = 100
SETTLED_S = 6
BACKOFF_S = 6
"""A requeued job is held for cred_expire + 1 seconds."""
OK = (0, 0)


@dataclass
class Wanted:
    """One job as it should be found.

    Attributes:
        job: the id as Slurm shows it: ``7``, ``7_1``, ``7+0``.
        kind: what it is there for.
        user: who submitted it.
        asked: GPUs it asked for, over all its nodes.
        submitted: (before, after) sbatch ran, seconds since the epoch.
        attempts: Slurm's state of each attempt, in order.
        exits: exit code and signal of each attempt; None where releases of Slurm differ.
        name: its name.
        partition: where it is queued.
        nodes: how many nodes it runs on.
        derived: highest exit code of its steps.
        held_until: when the last attempt could run at last, as the driver knows; None where at once.
        ended_at: when the driver ended it.
        after: the job whose end it had to wait for.
        runs: whether its last attempt has ever started.
        raw_id: its number; known for array tasks only once they run.
    """

    job: str
    kind: str
    user: str
    asked: int
    submitted: tuple[float, float]
    attempts: list[str] = field(default_factory=lambda: ["COMPLETED"])
    exits: list[tuple[int, int] | None] = field(default_factory=lambda: [OK])
    name: str = "job.sh"
    partition: str = "gpu"
    nodes: int = 1
    derived: int = 0
    held_until: float | None = None
    ended_at: float | None = None
    after: str | None = None
    runs: bool = True
    raw_id: str | None = None


@dataclass(frozen=True)
class Run:
    """One start of a job as its script saw it: times in seconds since the epoch, gpus as numbered on its first node."""

    raw_id: str
    restart: int
    start: float
    end: float | None
    machine: str
    gpus: tuple[int, ...]
    machines: frozenset[str]


class Driver:
    """Submits the workload and does to it what users and administrators do."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.wanted: dict[str, Wanted] = {}
        self.down: list[float] = []
        self.queue: dict[str, str] = {}
        self._todo: list[tuple[Callable[[], bool], Callable[[], object]]] = []

    # ---- submitting

    def submit(
        self, kind: str, user: str, options: list[str], job: list[str], *, tasks: Sequence[str] = ("",), **wanted: Any
    ) -> str:
        """Submit one job; with `tasks` (``_0``, ``+1`` …), note each part of it. Returns its id."""
        before = time.time()
        command = ["sbatch", "--parsable", "--output=/dev/null", "--cpus-per-task=1", "--mem-per-cpu=50M", *options]
        number = self.lab.run(*command, "job.sh", *job, user=user).strip().split(";")[0]
        after = time.time()
        for part in tasks:
            given = {"asked": 1, "raw_id": None if part.startswith("_") else number, **wanted}
            self.wanted[number + part] = Wanted(number + part, kind, user, submitted=(before, after), **given)
        return number

    def admin(self, *command: str, user: str | None = None) -> float:
        """Do something to the cluster, as root or as a user; return when."""
        self.lab.run(*command, user=user)
        return time.time()

    # ---- waiting and meddling

    def when(self, ready: Callable[[], bool], act: Callable[[], object]) -> None:
        """Do something as soon as something else is so."""
        self._todo.append((ready, act))

    def in_state(self, *jobs: str, state: str = "R") -> Callable[[], bool]:
        """Whether all these jobs are in a state and were so 6 s ago, as a question to be asked again and again.

        Slurm tells its accounting of a start within 5 s, and of a job that went back into the queue before that, never.
        """
        since: list[float] = []

        def settled() -> bool:
            if not all(self.queue.get(job) == state for job in jobs):
                since.clear()
                return False
            since.append(time.time())
            return since[-1] - since[0] >= SETTLED_S

        return settled

    def poll(self) -> None:
        """Look at the queue, and do what has become due."""
        lines = self.lab.run("squeue", "--noheader", "--array", "--format=%i %t").splitlines()
        self.queue = dict(line.split() for line in lines)
        due = [step for step in self._todo if step[0]()]
        self._todo = [step for step in self._todo if step not in due]
        for _, act in due:
            act()

    def finish(self, *left: str) -> None:
        """Go on until only `left` are in the queue.

        Raises:
            TimeoutError: that never happens.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            self.poll()
            if not self._todo and set(self.queue) <= set(left):
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"still in the queue: {self.queue}, still to do: {len(self._todo)}")
            time.sleep(0.25)


V100 = ["--constraint=v100", "--gres=gpu:1"]
ODD_NAMES = ("a|b|c", "two\nlines", "übung-训练-🚀", 'quote" and `tick`', "[bold]tag[/bold]", "tab\there", "x" * 200)


def preemption(driver: Driver) -> None:
    """Two jobs that are thrown off their GPUs by two others; one comes back."""
    whole = ["--partition=a100", "--gres=gpu:8", "--qos=low"]
    cancelled = driver.submit(
        "preempted, not requeued", "uucp", [*whole, "--nodelist=gpu001", "--no-requeue"], ["sleep", "60"],
        asked=8, partition="a100", attempts=["PREEMPTED"],
    )  # fmt: skip
    requeued = driver.submit(
        "preempted, requeued", "uucp", [*whole, "--nodelist=gpu002"], ["twice", "60"],
        asked=8, partition="a100", attempts=["PREEMPTED", "COMPLETED"], exits=[OK, OK],
    )  # fmt: skip

    def preempt() -> None:
        taking = ["--partition=a100", "--gres=gpu:8", "--qos=high"]
        for node in ("gpu001", "gpu002"):
            driver.submit(
                "preemptor", "games", [*taking, f"--nodelist={node}"], ["sleep", "2"], asked=8, partition="a100"
            )
        driver.wanted[requeued].held_until = time.time() + BACKOFF_S

    driver.when(driver.in_state(cancelled, requeued), preempt)


def time_out(driver: Driver) -> None:
    """A job that reaches its time limit."""
    late = driver.submit(
        "time-out", "games", ["--partition=cpu"], ["sleep", "200"], asked=0, partition="cpu", attempts=["TIMEOUT"]
    )
    # a time limit counts whole minutes; moving the end does not
    driver.when(driver.in_state(late), lambda: driver.admin("scontrol", "update", f"JobId={late}", "EndTime=now+2"))


def ordinary(driver: Driver) -> None:
    """Jobs that nobody meddles with."""
    submit = driver.submit
    submit("ok", "games", V100, ["sleep", "2"])
    submit("no GPU", "mail", ["--partition=cpu"], ["sleep", "1"], asked=0, partition="cpu")
    wide = ["--partition=v100", "--nodes=2"]
    submit("two nodes", "games", [*wide, "--gres=gpu:2"], ["nodes"], asked=4, nodes=2, partition="v100")
    submit("uneven", "news", [*wide, "--ntasks=2", "--gpus=6"], ["nodes"], asked=6, nodes=2, partition="v100")
    submit("exclusive", "news", ["--partition=v100", "--exclusive"], ["nodes"], asked=4, partition="v100")
    for code in (3, 42, 137, 255):
        submit(f"exit {code}", "mail", V100, ["exit", str(code)], attempts=["FAILED"], exits=[(code, 0)])
    for signal, number in (("SEGV", 11), ("ABRT", 6), ("KILL", 9)):
        submit(f"signal {signal}", "mail", V100, ["signal", signal], attempts=["FAILED"], exits=[(0, number)])
    submit("step failure", "mail", V100, ["stepfail", "3"], derived=3)
    for name in ODD_NAMES:
        submit("odd name", "uucp", [*V100, f"--job-name={name}", "--comment=x|y"], ["exit", "0"], name=name)


def grouped(driver: Driver) -> None:
    """An array with two tasks at a time, and a job of two parts."""
    array = driver.submit("array", "news", [*V100, "--array=0-5%2"], ["third"], tasks=[f"_{task}" for task in range(6)])
    for task in (0, 3):
        wanted = driver.wanted[f"{array}_{task}"]
        wanted.attempts, wanted.exits = ["FAILED"], [(7, 0)]
    parts = ["--partition=v100", "--gres=gpu:1", ":", "--partition=cpu", "--cpus-per-task=2"]
    first = driver.submit("het", "games", parts, ["sleep", "1"], tasks=["+0", "+1"], partition="v100")
    second = driver.wanted[f"{first}+1"]
    second.asked, second.partition, second.raw_id = 0, "cpu", str(int(first) + 1)


def waiting(driver: Driver) -> None:
    """Jobs that may not start at once, for reasons that Slurm knows exactly."""
    begin = driver.submit("begin", "games", [*V100, "--begin=now+7"], ["sleep", "1"])
    driver.wanted[begin].held_until = driver.wanted[begin].submitted[1] + 7
    held = driver.submit("held, released", "games", [*V100, "--hold"], ["sleep", "1"])
    since = time.time()

    def release() -> None:
        driver.wanted[held].held_until = driver.admin("scontrol", "release", held)

    driver.when(lambda: time.time() > since + 8, release)
    first = driver.submit("dependency, first", "mail", V100, ["sleep", "4"])
    after = driver.submit("dependency", "mail", [*V100, f"--dependency=afterok:{first}"], ["sleep", "1"])
    driver.wanted[after].after = first
    fails = driver.submit("dependency, fails", "mail", V100, ["exit", "1"], attempts=["FAILED"], exits=[(1, 0)])
    driver.submit(
        "dependency, never", "mail", [*V100, f"--dependency=afterok:{fails}", "--kill-on-invalid-dep=yes"],
        ["sleep", "1"], attempts=["CANCELLED"], runs=False,
    )  # fmt: skip


def stopped(driver: Driver) -> None:
    """Jobs that are ended from outside: by their user, by root, by their time limit."""

    def cancel(job: str, by: str | None) -> None:
        driver.wanted[job].ended_at = driver.admin("scancel", job, user=by)

    for by in ("news", None):
        running = driver.submit(
            f"cancelled by {by or 'root'}", "news", V100, ["sleep", "200"], attempts=["CANCELLED"], exits=[OK]
        )
        driver.when(driver.in_state(running), lambda job=running, by=by: cancel(job, by))
    # more nodes than are idle, at the lowest priority: it waits until it is cancelled
    blocked = driver.submit(
        "cancelled, pending", "uucp", ["--partition=a100", "--nodes=2", "--gres=gpu:8", "--qos=low"], ["sleep", "9"],
        asked=16, nodes=2, partition="a100", attempts=["CANCELLED"], runs=False,
    )  # fmt: skip
    driver.when(driver.in_state(blocked, state="PD"), lambda: cancel(blocked, "uucp"))
    held = driver.submit(
        "cancelled, held", "uucp", [*V100, "--hold"], ["sleep", "9"], attempts=["CANCELLED"], runs=False
    )
    driver.when(driver.in_state(held, state="PD"), lambda: cancel(held, "uucp"))


def requeued(driver: Driver) -> None:
    """Jobs that go back into the queue: by their exit code, and by an administrator."""
    twice = {"exits": [OK, OK]}
    driver.submit(
        "requeued, exit 99", "games", V100, ["twice", "6"], attempts=["REQUEUED", "COMPLETED"], exits=[(99, 0), OK]
    )
    job = driver.submit("requeued by root", "games", V100, ["twice", "60"], attempts=["REQUEUED", "COMPLETED"], **twice)

    def requeue() -> None:
        driver.wanted[job].held_until = driver.admin("scontrol", "requeue", job) + BACKOFF_S

    driver.when(driver.in_state(job), requeue)


def node_down(driver: Driver) -> None:
    """A node that fails under two jobs; one of them runs again elsewhere."""
    # between them they have all of its GPUs: no other job is to be hit
    lost = driver.submit(
        "node fails", "mail", ["--nodelist=gpu004", "--gres=gpu:3", "--no-requeue"], ["sleep", "200"],
        asked=3, attempts=["NODE_FAIL"], exits=[None],
    )  # fmt: skip
    again = driver.submit(
        "node fails, requeued", "mail", ["--nodelist=gpu004", "--gres=gpu:1"], ["twice", "60"],
        attempts=["NODE_FAIL", "COMPLETED"], exits=[None, OK],
    )  # fmt: skip

    def fail() -> None:
        when = driver.admin(
            "scontrol", "update", "NodeName=gpu004", "State=DOWN", "Reason=XID 79: fallen | off the bus"
        )
        driver.down = [when]
        driver.wanted[lost].ended_at = when
        driver.wanted[again].held_until = when + BACKOFF_S
        driver.when(lambda: time.time() > when + 2, resume)

    def resume() -> None:
        driver.down.append(driver.admin("scontrol", "update", "NodeName=gpu004", "State=RESUME"))

    # while its steps are still starting, Slurm takes the failure of a node for one of the launch
    driver.when(driver.in_state(lost, again), fail)


def left_over(driver: Driver) -> list[str]:
    """Jobs that are still in the queue when the accounting is read: running, waiting, held."""
    running = driver.submit("running", "games", V100, ["sleep", "500"], attempts=["RUNNING"])
    waits = driver.submit(
        "pending", "games", ["--partition=v100", "--nodes=2", "--gres=gpu:4"], ["sleep", "1"],
        asked=8, partition="v100", nodes=2, attempts=["PENDING"], runs=False,
    )  # fmt: skip
    held = driver.submit("pending, held", "games", [*V100, "--hold"], ["sleep", "1"], attempts=["PENDING"], runs=False)
    driver.when(lambda: driver.queue.get(running) == "R", lambda: None)
    return [running, waits, held]


def drive(lab: Lab, halfway: Callable[[], object]) -> Driver:
    """Run the whole workload; takes half a minute.

    Args:
        lab: a running cluster.
        halfway: is called while some jobs have ended, some run and some wait.
    """
    driver = Driver(lab)
    time_out(driver)
    preemption(driver)
    node_down(driver)
    ordinary(driver)
    grouped(driver)
    waiting(driver)
    stopped(driver)
    requeued(driver)
    since = time.time()
    driver.when(lambda: time.time() > since + 6, halfway)
    driver.finish()
    left = left_over(driver)
    driver.finish(*left)
    accounting_hears_of(lab, left)
    return driver


def accounting_hears_of(lab: Lab, jobs: list[str]) -> None:
    """Wait until slurmdbd knows of jobs that have only just been submitted or started.

    Raises:
        TimeoutError: it never does.
    """
    command = ["sacct", "--noheader", "--allocations", "--parsable2", "--format=JobIDRaw,State"]
    for _ in range(60):
        known = lab.run(*command, f"--jobs={','.join(jobs)}").split()
        if f"{jobs[0]}|RUNNING" in known and len(known) == len(jobs):
            return
        time.sleep(0.25)
    raise TimeoutError(f"accounting knows only of {known}")


def runs(lab: Lab) -> dict[tuple[str, int], Run]:
    """Read what the jobs themselves wrote down: (number of the job, restarts so far) -> its run."""
    rows = [line.split("\t") for line in (lab.work / "ran.tsv").read_text().splitlines()]
    ends = {(job, int(restart)): float(at) for kind, job, restart, at, _, _ in rows if kind == "end"}
    found = {}
    for kind, job, restart, at, machine, gpus in rows:
        if kind != "start":
            continue
        key = job, int(restart)
        machines = {row[4] for row in rows if (row[1], int(row[2])) == key}
        indices = tuple(sorted(int(gpu) for gpu in gpus.split(",") if gpu))
        found[key] = Run(job, key[1], float(at), ends.get(key), machine, indices, frozenset(machines))
    return found
