"""What readers of traces make of a file: tasks with their preceding tasks, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuctl.research.dag.jobs import Job


@dataclass
class Imported:
    """Result of reading a trace.

    Attributes:
        jobs: by arrival, then in file order.
        rows: number of rows of the file.
        left_out: rows of jobs that are left out, by reason.
        raised: stages that took less than a millisecond in the file, set to one.
    """

    jobs: list[Job] = field(default_factory=list)
    rows: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    raised: int = 0

    def leave_out(self, why: str, rows: int) -> None:
        """Count rows that are left out."""
        self.left_out[why] = self.left_out.get(why, 0) + rows


@dataclass(frozen=True)
class Task:
    """A row of a trace, which becomes a stage.

    Attributes:
        number: of the task within its job.
        parents: numbers of the tasks that must end before.
        tasks: number of identical tasks.
        begin_ms: submission or start, in ms.
        length_ms: time that each takes.
        why_not: why its job is left out; empty if it is not.
    """

    number: int
    parents: tuple[int, ...]
    tasks: int
    begin_ms: int
    length_ms: int
    why_not: str = ""
