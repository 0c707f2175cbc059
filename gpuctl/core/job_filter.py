"""The filter that ``--user``, ``--queue``, ``--since`` and similar options make: the jobs that a result covers.

A filter selects jobs with their attempts, waits, telemetry and failures. Figures of the cluster (GPUs in use, quotas,
why a job waited) are always computed over all jobs.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, get_args

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import NamedValue, Note, literal, note, together
from gpuctl.core.states import State
from gpuctl.core.suggestions import meant

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gpuctl.core.notes import Kind

Name = Literal["user", "queue", "account"]
NAMES: tuple[Name, ...] = get_args(Name)
"""What is chosen by names; of state, too, but those are ours."""


_COMMA = re.compile(r"(?<!\\),")
"""Separator of names; within a name it is escaped by a backslash."""


@dataclass(frozen=True)
class JobFilter:
    """Conditions that a job must all meet. False if there are none.

    Attributes:
        user: names, one of which the job has; empty: any. The same for ``queue``, ``account`` and ``state``.
        gpus: the fewest and the most GPUs of a job.
        since: submitted at this ISO date or time, or later; a replay of a CSV also accepts seconds.
        until: submitted before.
    """

    user: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    account: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    gpus: tuple[float, float] | None = None
    since: str | None = None
    until: str | None = None

    def __bool__(self) -> bool:
        return self != EVERY_JOB

    @property
    def names(self) -> dict[Name, tuple[str, ...]]:
        """Return the requested names by their kind."""
        return {"user": self.user, "queue": self.queue, "account": self.account}

    def description(self, matching: int, of: int) -> Note:
        """Return the filter as options, and how many jobs match it."""
        return note(
            "{options} matches {matching:,} of {of:,} job{of||s}", options=self.options(), matching=matching, of=of
        )

    def options(self) -> Note:
        """Return the filter as options."""
        words = [_option(kind, name) for kind in NAMES for name in self.names[kind]]
        words += [note("--state {state}", state=literal(name)) for name in self.state]
        if self.gpus is not None:
            words.append(_gpus(*self.gpus))
        words += [note("--since {when}", when=NamedValue("value", self.since))] if self.since else []
        words += [note("--until {when}", when=NamedValue("value", self.until))] if self.until else []
        return together(" ", words)

    def check(self, known: Mapping[Name, Collection[str]]) -> None:
        """Reject names that no job has.

        Args:
            known: names of the jobs, by kind.

        Raises:
            UsageError: a name matches no job; the message suggests a similar one.
        """
        for kind, wanted in self.names.items():
            for name in wanted:
                if name not in known[kind]:
                    there = sorted(known[kind])
                    some = f"known: {', '.join(there[:10])}{' ...' if len(there) > 10 else ''}"
                    whole = next((one for one in there if name in one.split(",") and one != name), None)
                    hint = meant(name, there, some if there else f"this log records no {kind} for any job")
                    if whole is not None:
                        escaped = whole.replace(",", "\\,")
                        hint = f"put a backslash before a comma that is part of a name: --{kind} {shlex.quote(escaped)}"
                    raise UsageError(f"--{kind} {name}: no job has this {kind}", hint=hint)

    def refuse_empty(self, of: int) -> None:
        """Report that none of so many jobs matches.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"the filter {self.description(0, of)}", hint="leave out one of its options")


EVERY_JOB = JobFilter()


def parse(
    *,
    user: Sequence[str] = (),
    queue: Sequence[str] = (),
    account: Sequence[str] = (),
    state: Sequence[str] = (),
    gpus: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> JobFilter:
    """Return the filter that options make; commas separate names, and a backslash escapes a comma in a name.

    Raises:
        UsageError: a value is invalid.
    """
    states = states_of("--state", state)
    return JobFilter(
        _listed(user), _listed(queue), _listed(account), states, None if gpus is None else _range(gpus),
        since and since.strip(), until and until.strip(),
    )  # fmt: skip


def states_of(option: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return the states of a comma-separated list.

    Raises:
        UsageError: one of them is not a state.
    """
    states = _listed(given)
    for name in states:
        if name not in list(State):
            raise UsageError(f"{option} {name}: no such state", hint=meant(name, list(State)))
    return states


def instant(text: str, option: str) -> datetime:
    """Return an ISO date or time; without a zone if it names none.

    Raises:
        UsageError: it is not a date or time.
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"{option} {text}: expected an ISO date or time", hint="2017-10-09, 2017-10-09T12:00"
        ) from error


def _option(kind: Kind, name: str) -> Note:
    """Return one option, its value quoted if a shell requires that."""
    if shlex.quote(name) == name:
        return note("--{kind} {name}", kind=literal(kind), name=NamedValue(kind, name))
    return note("--{kind} '{name}'", kind=literal(kind), name=NamedValue(kind, name))


def _gpus(least: float, most: float) -> Note:
    if least == most:
        return note("--gpus {least:g}", least=least)
    if math.isinf(most):
        return note("--gpus {least:g}..", least=least)
    return note("--gpus {least:g}..{most:g}", least=least, most=most) if least else note("--gpus ..{most:g}", most=most)


def _listed(given: Sequence[str]) -> tuple[str, ...]:
    names = (name.replace("\\,", ",").strip() for text in given for name in _COMMA.split(text))
    return tuple(dict.fromkeys(name for name in names if name))


def _range(text: str) -> tuple[float, float]:
    first, dots, last = text.partition("..")
    try:
        least = float(first) if first.strip() else 0.0
        most = least if not dots else float(last) if last.strip() else math.inf
    except ValueError:
        least, most = 1.0, 0.0
    if not (0 <= least <= most and (first.strip() or last.strip())) or math.isinf(least):
        raise UsageError(f"--gpus {text}: expected GPUs of a job, or FROM..TO", hint="4, 4..8, ..1 or 8..")
    return least, most
