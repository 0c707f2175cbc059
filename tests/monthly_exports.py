"""A site's year as its accounting exports it: month by month, with days of overlap, and whole."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tests.sacct_records import text

DAY_S = 86400
MONTHS = tuple(int(datetime(2026 + m // 12, m % 12 + 1, 1, tzinfo=UTC).timestamp()) for m in range(13))
"""The first second of each month of 2026, and of 2027."""
OVERLAP_S = 3 * DAY_S
"""Days before its month that an export covers, too."""


@dataclass(frozen=True)
class Attempt:
    """One attempt of a job; times in seconds since 1970, None if that never was."""

    job: int
    user: str
    queue: str
    gpus: int
    node: str
    queued_s: int
    start_s: int | None
    end_s: int
    state: str

    def at(self, now_s: int) -> Attempt | None:
        """What is known of it at some time; None before it was queued."""
        if self.queued_s >= now_s:
            return None
        if self.start_s is None or self.start_s >= now_s:
            return self if self.end_s < now_s else replace(self, start_s=None, end_s=0, state="PENDING")
        return self if self.end_s < now_s else replace(self, end_s=0, state="RUNNING")


def year(seed: int, jobs: int) -> list[Attempt]:
    """Attempts of a year: requeued after node failures, cancelled in the queue, across the ends of months."""
    chance = random.Random(seed)
    found = []
    for job in range(1, jobs + 1):
        queued = MONTHS[0] + chance.randrange(MONTHS[-1] - MONTHS[0] - 40 * DAY_S)
        if chance.random() < 0.4:
            queued = chance.choice(MONTHS[1:-1]) + chance.randrange(-4 * DAY_S, 2 * DAY_S)
        about = (f"u{chance.randrange(5)}", chance.choice(["gpu", "big"]), chance.choice([1, 2, 4, 8]))
        for attempt in range(chance.choice([1, 1, 1, 2, 3])):
            start = queued + int(chance.expovariate(1 / 20000))
            end = start + 60 + int(chance.expovariate(1 / (3 * DAY_S)))
            node = f"n{chance.randrange(6)}"
            if attempt == 0 and chance.random() < 0.05:
                found.append(Attempt(job, *about, node, queued, None, start, "CANCELLED by 1001"))
                break
            found.append(Attempt(job, *about, node, queued, start, end, "REQUEUED"))
            queued = end
        if found[-1].state == "REQUEUED":
            state = chance.choice(["COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1001", "NODE_FAIL"])
            found[-1] = replace(found[-1], state=state)
    return found


def sacct(attempts: list[Attempt], first_s: int, last_s: int, now_s: int) -> str:
    """The export of what was queued, waited or ran between two times, as ``sacct -D`` prints it at `now_s`."""
    records = []
    for attempt in attempts:
        known = attempt.at(now_s)
        if known is None or attempt.queued_s >= last_s or attempt.end_s <= first_s:
            continue
        over, began = known.end_s > 0, known.start_s is not None
        tres = f"billing={known.gpus},cpu=8,gres/gpu={known.gpus},node=1"
        elapsed = (known.end_s if over else now_s) - (known.start_s or 0) if began else 0
        records.append(
            {
                "JobIDRaw": str(known.job), "JobID": str(known.job), "User": known.user, "Partition": known.queue,
                "Account": f"a{known.user[1:]}", "Submit": str(known.queued_s), "Eligible": str(known.queued_s),
                "Start": str(known.start_s) if began else "None" if over else "Unknown",
                "End": str(known.end_s) if over else "Unknown", "State": known.state,
                "Elapsed": f"{elapsed // DAY_S}-{elapsed // 3600 % 24:02}:{elapsed // 60 % 60:02}:{elapsed % 60:02}",
                "ReqTRES": tres, "AllocTRES": tres if began else "",
                "NodeList": known.node if began else "None assigned",
            }
        )  # fmt: skip
    return text(*records)


def monthly(attempts: list[Attempt]) -> list[str]:
    """Twelve exports, each made six hours after the end of its month."""
    return [
        sacct(attempts, MONTHS[m] - OVERLAP_S, MONTHS[m + 1] + 6 * 3600, MONTHS[m + 1] + 6 * 3600) for m in range(12)
    ]
