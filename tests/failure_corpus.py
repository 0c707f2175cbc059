"""The corpus of really failing programs (labs/failures made it), and how the classifier does on it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from gpuctl.core.states import State
from gpuctl.joblogs.classify import classify
from gpuctl.joblogs.evidence import Facts, Match, Verdict
from gpuctl.joblogs.table import Table
from tests.signatures import scanner

CORPUS = Path(__file__).parent / "fixtures" / "failures"
HIGH = 0.8
"""A confidence from which on a verdict claims to be sure."""


@dataclass(frozen=True)
class Case:
    """One recorded run.

    Attributes:
        reason: the true one; None where it did not fail.
        acceptable: others that an expert would also take.
    """

    name: str
    split: str
    program: str
    reason: str | None
    acceptable: tuple[str, ...]
    facts: Facts
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Outcome:
    case: Case
    verdict: Verdict

    @property
    def right(self) -> bool:
        if self.case.reason is None:
            return not self.verdict.failed
        return self.verdict.reason == self.case.reason or self.verdict.reason in self.case.acceptable


def cases(split: str) -> list[Case]:
    found = []
    for line in (CORPUS / "manifest.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["split"] != split:
            continue
        folder = CORPUS / split / entry["case"]
        state = entry.get("state")
        found.append(
            Case(
                name=entry["case"],
                split=split,
                program=entry["program"],
                reason=entry["reason"],
                acceptable=tuple(entry.get("acceptable") or ()),
                facts=Facts(
                    state=_STATES.get(state, state),
                    exit_code=entry.get("exit_code"),
                    exit_signal=entry.get("exit_signal"),
                ),
                files=tuple(sorted(path for path in folder.iterdir() if path.is_file())),
            )
        )
    return found


_STATES = {"cancelled": State.KILLED}


def judge(case: Case, *, with_facts: bool) -> Outcome:
    """Classify a case from its logs; `told`: with its exit code and state, as the scheduler would say them."""
    matches: list[Match] = []
    for path in case.files:
        with path.open("rb") as stream:
            scan = scanner().scan(stream)
        name = path.name if len(case.files) > 1 else ""
        matches += (match._replace(stream=name) for match in (*scan.matches, *scan.telling))
    return Outcome(case, classify(matches, scanner().table, case.facts if with_facts else None))


def wrong_category(outcome: Outcome, table: Table) -> bool:
    """Whether it says with high confidence a category that the true reason does not have."""
    if outcome.right or outcome.verdict.confidence < HIGH or outcome.verdict.category is None:
        return False
    reasons = [outcome.case.reason, *outcome.case.acceptable]
    true = {category for reason in reasons if reason is not None for category in table.reasons[reason].categories}
    return not true & set(outcome.verdict.category.split("+"))


def confusion(outcomes: list[Outcome]) -> list[tuple[str, str, int]]:
    """(true reason, said reason, cases) of what was not right."""
    counted = Counter(
        (one.case.reason or "no failure", one.verdict.reason or "no failure") for one in outcomes if not one.right
    )
    return sorted((true, said, n) for (true, said), n in counted.items())
