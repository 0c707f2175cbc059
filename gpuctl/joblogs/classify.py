"""Decides why an attempt failed from the stored lines of its logs and from its scheduler's records.

The rule, in order:

1. Lines after which the program continued to work (training progress, "retry succeeded", much ordinary output) no
   longer count as reasons; they are considered only if nothing else is left.
2. Root causes precede errors, errors precede symptoms of another process's death, and those precede generic signs.
3. Among equals, the earliest decides: by the lines' own timestamps if all have them, else by the position in the log.

The scheduler's statement ranks after the logs' root causes and before everything else: it shows that a job ran out of
memory or time, while a log may show why.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpuctl.core.states import State
from gpuctl.joblogs.evidence import Facts, Match, Verdict
from gpuctl.joblogs.prefix import prefix
from gpuctl.joblogs.structure import FORMATS, PREFIX, compilers, launchers
from gpuctl.joblogs.table import (
    CAUSES,
    LAST_WORDS,
    NO_SIGNATURE,
    NOTHING,
    NOTHING_LOGGED,
    READ,
    Table,
    Tier,
    reading_ids,
)
from gpuctl.joblogs.templates import is_informative

if TYPE_CHECKING:
    from collections.abc import Sequence

SURVIVED = 25
"""More lines of ordinary output than this after an error mean that the program went on."""
AT_END = 8
"""Without the scheduler's word, an error followed by at most so many lines of ordinary output is taken as the end."""
SCHEDULER = "scheduler"
_NO_FACTS = Facts()
_ENDED_WELL = frozenset({State.COMPLETED, State.RUNNING, State.PENDING, State.SUSPENDED})
_STATES = {
    State.OUT_OF_MEMORY: "cpu_out_of_memory",
    State.TIMEOUT: "time_limit",
    State.NODE_FAIL: "node_failure",
    State.PREEMPTED: "job_preempted",
    State.KILLED: "cancelled",
}
_SIGNALS = {
    4: "invalid_memory_access",
    6: "core_dump",
    7: "invalid_memory_access",
    8: "numerical_error",
    9: "process_killed",
    11: "invalid_memory_access",
    15: "cancelled",
}
# 124: timeout(1)
_CRASHES = frozenset({4, 6, 7, 8, 11})
"""Signals of native code. Python ends with exit code 1 for an exception that nothing catches."""
_LAUNCHERS = frozenset(PREFIX + form.name for form in launchers.FORMATS)
LEARNED = "learned"
"""Stands for a signature where the learned reader gave the reason of a line that no format marks."""
_GUESSES = frozenset({LAST_WORDS, *(PREFIX + form.name for form in FORMATS if form not in compilers.FORMATS)})
_LEAST_OF_CLASS = 0.6
"""A class of errors gives way to a reading of its message from this confidence on..."""
_LEAST = dict.fromkeys(_GUESSES, 0.45)
"""...and what says nothing of the reason from this one on."""
_FATAL = "py-fatal-"
_DUMP = PREFIX + "faulthandler"
"""A dump of threads: programs go on after it unless they asked to end."""
_TRACEBACK_HEAD = "py-traceback"
_SAVE_FRAME = "-save-frame"
_START_FRAME = "subprocess-frame"
_NO_START = frozenset({"resource_limit", "cpu_out_of_memory", "permission_error", "launch_failed"})
"""Why a command that exists cannot be started."""
_TRACEBACK = 60
"""A traceback's exception follows each of its frames within so many lines."""
_PERHAPS = frozenset({"says-usage-alone"})
"""Signatures that also programs print that were right: one that explains itself shows its usage."""
_MARKED = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL|SEVERE)\b|^\s*(?:\*\*\*|!!|E:)"
    r"|^[^\n:]{0,120}\b(?:error|fatal|failed|panic)\b[^\n:]{0,40}:",
    re.I,
)
_NO_COMPLAINT = re.compile(
    r"\b(?:errors?|fail(?:ed|ures?)?|missing|unknown|invalid|killed|exceptions?)\W{1,3}(?:0|none)\b"
    r"|\b(?:no|0|zero|without|any) (?:\w+ ){0,2}(?:errors?|fail(?:ed|ures?)|exceptions?|missing|unknown|invalid)"
    r"|\b(?:as|was|were|is|are|than|which) expected|\bexpected (?:to|fail\w*|error|kill|exception)\b"
    r"|\bignor(?:ed|ing)\b"
    r"|\bskipp(?:ed|ing)\b|\b(?:re-?try|retri(?:ed|es)|retrying|recovered|falling back|fallback|instead|us(?:ing|es) )"
    r"|\b(?:warn(?:ing)?|info|debug|notice|passed|succe(?:ss|eded)\w*|done|finished|completed|saved|wrote|written)\b",
    re.IGNORECASE,
)
"""What shows that words of failures are no complaint."""
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit|Warning)(?::|$)")
_CODES = {124: "time_limit", 126: "permission_error", 127: "command_not_found"}
# measured on tests/fixtures/failures: docs/how-to/failures.md
_CONFIDENCE = {Tier.ROOT: 0.95, Tier.ERROR: 0.8, Tier.SYMPTOM: 0.5, Tier.GENERIC: 0.35}
_CLASS_ALONE = 0.6
"""Of a verdict by the class of an error, whose message says nothing more."""
_SCHEDULER_STATE = 0.95
_SCHEDULER_SIGN = 0.5
_NOTHING = 0.5
_SURVIVED_FACTOR = 0.6
_CONTESTED_FACTOR = 0.85
_UNSURE_FACTOR = 0.9
_MENTIONED_FACTOR = 0.6


class _Candidate(NamedTuple):
    survived: bool
    order: int
    when: float
    match: Match
    tier: Tier
    reason: str
    final: bool


def _first(candidate: _Candidate) -> tuple[bool, int, float, str, int, str, str]:
    # matches at one place (equal stamps, parts of a line that was overwritten) are ordered by their text: the verdict
    # must not depend on the order in which logs are read
    match = candidate.match
    return (*candidate[:3], match.stream, match.line_no, match.signature or "", match.text)


def classify(matches: Sequence[Match], table: Table, facts: Facts | None = None) -> Verdict:
    """Decide why an attempt failed.

    Args:
        matches: stored lines of all logs of the attempt.
        table: the signatures that matched them.
        facts: the scheduler's statements; None if nothing is known, not even that the attempt failed.

    Returns:
        a verdict; `Verdict.failed` is False if the scheduler states that the attempt ended well, and, without its
        word, if no log ends with an error; None if one does that programs survive as well: then the reason is
        why it failed if it did.
    """
    verdict = _by_rules(matches, table, facts)
    if table.learned and verdict.reason is not None and _is_guess(verdict, table):
        return _by_words(verdict, matches, table)
    return verdict


def _is_guess(verdict: Verdict, table: Table) -> bool:
    """Return whether a verdict rests on a class, a format or an exit code alone, and a message may say more."""
    if verdict.signature is None:
        # 126 and 127 are what shells, and other programs for other reasons, end with
        hint = verdict.stream == SCHEDULER and verdict.reason in {"permission_error", "command_not_found"}
        return hint or verdict.reason in {NO_SIGNATURE, NOTHING_LOGGED}
    signature = table.signatures.get(verdict.signature)
    return verdict.signature in _GUESSES or (signature is not None and signature.fallback > 1)


def _by_words(guess: Verdict, matches: Sequence[Match], table: Table) -> Verdict:
    """Replace a guess by what the learned reader makes of the message."""
    from gpuctl.joblogs import learned

    evidence, line_no, stream = guess.evidence, guess.line_no, guess.stream
    if guess.signature is None and guess.reason != NO_SIGNATURE:
        told = _informative(matches)
        evidence, line_no, stream = (told.text, told.line_no, told.stream or None) if told else (None, None, None)
    if evidence is None:
        return guess
    reading = learned.read(evidence[prefix(evidence).end :])
    names = reading_ids(reading.reason, reading.confidence, reading.second)
    least = _LEAST.get(guess.signature or "", _LEAST_OF_CLASS)
    if not names or reading.confidence < least or reading.reason not in table.reasons:
        return guess
    confidence = table.signatures[names[0]].confidence * (1.0 if guess.failed else _MENTIONED_FACTOR)
    others = (*([reading.second] if reading.second else []), *([guess.reason] if guess.reason else []), *guess.others)
    return guess._replace(
        reason=reading.reason,
        category=table.category(reading.reason),
        confidence=round(confidence, 3),
        signature=LEARNED,
        evidence=evidence,
        line_no=line_no,
        stream=stream,
        others=tuple(dict.fromkeys(one for one in others if one != reading.reason and one in _told(table))),
    )


def _told(table: Table) -> frozenset[str]:
    return frozenset(table.reasons) - {NO_SIGNATURE, NOTHING_LOGGED}


def _informative(matches: Sequence[Match]) -> Match | None:
    """Return the last line without a signature that seems to describe what went wrong."""
    telling = [match for match in matches if match.signature is None]
    return next((match for match in reversed(telling) if is_informative(match.text)), None)


def _by_rules(matches: Sequence[Match], table: Table, facts: Facts | None) -> Verdict:
    known_facts = facts or _NO_FACTS
    known = (
        known_facts.state not in {None, State.UNKNOWN}
        or known_facts.exit_code is not None
        or known_facts.exit_signal is not None
    )
    if known and _ended_well(known_facts):
        return Verdict(failed=False)
    if not known:
        matches = [match for match in matches if not _is_last_word(match) or _complains(match)]
    crashed = _signal(known_facts) in _CRASHES or any((match.signature or "").startswith(_FATAL) for match in matches)
    found = sorted(_while_starting(_while_saving(_candidates(matches, table, crashed=crashed))), key=_first)
    if not known and (_reports_success(matches, table) or not any(_ended_here(candidate) for candidate in found)):
        return Verdict(failed=False)
    blamed = {match.rank for match in matches if match.signature in _LAUNCHERS}
    found = _not_survived(found, blamed)
    alive = _the_last_word_first([candidate for candidate in found if not candidate.survived])
    if blamed:
        # the launcher names the process that failed first: its peers' errors follow from that failure
        at_root, at_symptom = CAUSES.index(Tier.ROOT), CAUSES.index(Tier.SYMPTOM)
        alive.sort(
            key=lambda candidate: (
                candidate.order > at_root and not (candidate.match.rank in blamed and candidate.order <= at_symptom),
                candidate.order,
                candidate.match.rank not in blamed,
            )
        )
    own = _own_word(known_facts)
    root = next((c for c in alive if c.tier == Tier.ROOT), None)
    if own is not None and root is None and own[1] >= _SCHEDULER_STATE:
        return _by_scheduler(own, known_facts, table, alive)
    failed = True if known or any(_died(candidate) for candidate in found) else None
    alive = _deaths_before_symptoms(alive)
    if alive and not (own is not None and _says_less(alive[0], own)):
        return _by_log(alive[0], alive, table, failed=failed, sure=known)
    if own is not None:
        return _by_scheduler(own, known_facts, table, alive or found)
    if found:
        return _by_log(found[0], found, table, failed=failed, sure=known)
    return _unknown(matches)


_DEATHS = frozenset({"process_killed", "cpu_out_of_memory"})
_PEERS = frozenset({"peer_failed", "network_error", "collective_timeout"})


def _deaths_before_symptoms(alive: list[_Candidate]) -> list[_Candidate]:
    """Put the message that a process was killed before what its peers say of the connection that broke."""
    if not alive or alive[0].tier != Tier.SYMPTOM or alive[0].reason not in _PEERS:
        return alive
    death = next(
        (
            one
            for one in alive
            if one.tier == Tier.GENERIC and one.reason in _DEATHS and not (one.match.signature or "").startswith(PREFIX)
        ),
        None,
    )
    return alive if death is None else [death, *(one for one in alive if one is not death)]


def _says_less(best: _Candidate, own: tuple[str, float]) -> bool:
    """Return whether the log's best line says less than the scheduler's facts; an exit code's hint says little."""
    if best.tier != Tier.GENERIC or own[0] == "process_killed":
        return False
    if own[1] < _SCHEDULER_STATE and own[0] in _CODES.values():
        return (best.match.signature or "") == LAST_WORDS or best.reason in {"traceback", "core_dump"}
    return True


def _ended_well(facts: Facts) -> bool:
    if facts.state is not None and facts.state != State.UNKNOWN:
        return facts.state in _ENDED_WELL
    return not facts.exit_code and not facts.exit_signal


def _candidates(matches: Sequence[Match], table: Table, *, crashed: bool) -> list[_Candidate]:
    stamped = all(match.ts is not None for match in matches)
    candidates = []
    read = {_place(match) for match in matches if (match.signature or "").startswith(READ)} if table.learned else set()
    for match in matches:
        signature = table.signatures.get(match.signature or "")
        if signature is None or signature.reason is None or signature.id == NOTHING:
            continue
        reading = signature.id.startswith(READ)
        if reading != (_place(match) in read) and (reading or signature.fallback > 1 or _is_structure(signature.id)):
            continue
        survived = match.work_after or match.ordinary_after > SURVIVED
        if crashed and match.ordinary_after and _EXCEPTION.match(match.text, prefix(match.text).end):
            survived = True
        # of generic signs, "Killed" is more specific than a traceback
        generic = signature.tier == Tier.GENERIC
        vague = signature.fallback > 0 and signature.reason != "step_failed"
        order = CAUSES.index(signature.tier) + (generic and (vague or signature.id == LAST_WORDS))
        when = match.ts if stamped and match.ts is not None else float(match.line_no)
        candidates.append(_Candidate(survived, order, when, match, signature.tier, signature.reason, signature.final))
    return candidates


def _place(match: Match) -> tuple[str, int]:
    return match.stream, match.line_no


def _is_structure(name: str) -> bool:
    """Return whether an ending's format gave the reason, or the area of the library that raised it."""
    return name.startswith(PREFIX) and not name.startswith((READ, LAST_WORDS)) and name not in _LAUNCHERS


def _not_survived(found: list[_Candidate], blamed: set[int | None]) -> list[_Candidate]:
    """Take the last error of a process that its launcher blames, whatever other processes printed after it."""
    last: dict[tuple[str, int | None], int] = {}
    for candidate in found:
        match = candidate.match
        if match.rank in blamed and candidate.tier != Tier.GENERIC:
            process = (match.stream, match.rank)
            last[process] = max(last.get(process, 0), match.line_no)
    return [
        candidate._replace(survived=False)
        if candidate.tier != Tier.GENERIC
        and last.get((candidate.match.stream, candidate.match.rank), 0) == candidate.match.line_no
        else candidate
        for candidate in found
    ]


def _while_saving(candidates: list[_Candidate]) -> list[_Candidate]:
    """Treat a missing path as an error only if a frame of its traceback was saving a checkpoint."""
    frames: dict[tuple[str, int | None], list[Match]] = {}
    for candidate in candidates:
        if (candidate.match.signature or "").endswith(_SAVE_FRAME):
            frames.setdefault((candidate.match.stream, candidate.match.rank), []).append(candidate.match)
    return [
        candidate._replace(order=CAUSES.index(Tier.ERROR), tier=Tier.ERROR)
        if candidate.reason == "incorrect_inputs"
        and any(
            0 < candidate.match.line_no - frame.line_no <= _TRACEBACK
            and frame.ordinary_after == candidate.match.ordinary_after
            for frame in frames.get((candidate.match.stream, candidate.match.rank), ())
        )
        else candidate
        for candidate in candidates
    ]


def _while_starting(candidates: list[_Candidate]) -> list[_Candidate]:
    """Leave out that a command was started where its traceback ends with another reason than a missing file."""
    limits = [one.match.line_no for one in candidates if one.reason in _NO_START]
    return [
        one
        for one in candidates
        if one.match.signature != _START_FRAME or not any(0 < at - one.match.line_no <= _TRACEBACK for at in limits)
    ]


def _the_last_word_first(alive: list[_Candidate]) -> list[_Candidate]:
    """Rank last, among equals, an error after which the same process kept writing and then had another error."""
    gone_on: set[_Candidate] = set()
    later: dict[str, dict[str, int]] = {}
    for one in sorted(alive, key=lambda candidate: -candidate.match.line_no):
        if one.tier != Tier.ERROR or one.match.rank is not None:
            continue
        after = later.setdefault(one.match.stream, {})
        if any(reason != one.reason and least < one.match.ordinary_after for reason, least in after.items()):
            gone_on.add(one)
        after[one.reason] = min(one.match.ordinary_after, after.get(one.reason, one.match.ordinary_after))
    return sorted(alive, key=lambda candidate: (candidate.order, candidate in gone_on))


def _ended_here(candidate: _Candidate) -> bool:
    """Return whether a line stands at the end of its log: below a traceback, more lines may be part of its message."""
    most = SURVIVED if _raised(candidate.match) else AT_END
    return not candidate.match.work_after and candidate.match.ordinary_after <= most


def _raised(match: Match) -> bool:
    """Return whether a line is an exception's, or another one that ends a program."""
    name = match.signature or ""
    return (
        name == _TRACEBACK_HEAD
        or (name.startswith(PREFIX) and not name.startswith((LAST_WORDS, _DUMP)))
        or _EXCEPTION.match(match.text, prefix(match.text).end) is not None
    )


def _died(candidate: _Candidate) -> bool:
    """Return whether a line at the end of its log shows that the program died.

    Such lines are a generic sign, a cluster manager's message that it ended the job, and an exception's own line.
    """
    match = candidate.match
    if _is_last_word(match) or match.signature in _PERHAPS:
        return False
    raised = _raised(match)
    if candidate.final or (candidate.tier == Tier.GENERIC and not raised):
        return _ended_here(candidate)
    # a program ended by an exception prints nothing more
    return raised and not match.work_after and match.ordinary_after == 0


def _is_last_word(match: Match) -> bool:
    return (match.signature or "").startswith(LAST_WORDS)


def _complains(match: Match) -> bool:
    """Return whether one of a log's last lines says that something went wrong, though no format marks it.

    Unmarked words must be the last ones; a level or a program's name in front may be followed by details.
    """
    words = match.text[prefix(match.text).end :]
    most = AT_END if _MARKED.search(match.text) else 0
    return match.ordinary_after <= most and not _NO_COMPLAINT.search(words)


def _reports_success(matches: Sequence[Match], table: Table) -> bool:
    """Return whether a log of the attempt ends with the program's message that it succeeded."""
    return any(
        match.ordinary_after <= AT_END
        and match.signature is not None
        and match.signature in table.signatures
        and table.signatures[match.signature].tier == Tier.SUCCESS
        for match in matches
    )


def _own_word(facts: Facts) -> tuple[str, float] | None:
    """Return the reason that the scheduler's facts alone imply, and its confidence."""
    if facts.state in _STATES:
        return _STATES[State(facts.state)], _SCHEDULER_STATE
    signal, code = _signal(facts), facts.exit_code or 0
    if signal in _SIGNALS:
        return _SIGNALS[signal], _SCHEDULER_SIGN
    if code in _CODES:
        return _CODES[code], _SCHEDULER_SIGN
    return None


def _signal(facts: Facts) -> int:
    """Return the signal that ended the attempt, also as shells and containers show it; 0: none."""
    code = facts.exit_code or 0
    return facts.exit_signal or (code - 128 if 128 < code < 128 + 65 else 0)


def _by_scheduler(own: tuple[str, float], facts: Facts, table: Table, found: Sequence[_Candidate]) -> Verdict:
    reason, confidence = own
    words = [f"state {facts.state}"] if facts.state is not None else []
    words += [f"exit code {facts.exit_code}"] if facts.exit_code is not None else []
    words += [f"signal {facts.exit_signal}"] if facts.exit_signal else []
    return Verdict(
        failed=True,
        reason=reason,
        category=table.category(reason),
        confidence=confidence,
        stream=SCHEDULER,
        evidence="; ".join([", ".join(words), *facts.texts]),
        others=_others(reason, found),
    )


def _by_log(best: _Candidate, found: Sequence[_Candidate], table: Table, *, failed: bool | None, sure: bool) -> Verdict:
    signature = table.signatures[best.match.signature or ""]
    own = signature.confidence or (_CLASS_ALONE if signature.fallback > 1 else _CONFIDENCE[best.tier])
    confidence = min(own, _CONFIDENCE[Tier.ROOT]) * (_SURVIVED_FACTOR if best.survived else 1.0)
    confidence *= 1.0 if sure else _UNSURE_FACTOR
    if any(other.reason != best.reason and other.tier == best.tier for other in found):
        confidence *= _CONTESTED_FACTOR
    if failed is None:
        confidence *= _MENTIONED_FACTOR
    return Verdict(
        failed=failed,
        reason=best.reason,
        category=table.category(best.reason, best.match.signature),
        confidence=round(confidence, 3),
        signature=best.match.signature,
        stream=best.match.stream or None,
        line_no=best.match.line_no,
        evidence=best.match.text,
        others=_others(best.reason, found),
    )


def _others(reason: str, found: Sequence[_Candidate]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(candidate.reason for candidate in found if candidate.reason != reason))


def _unknown(matches: Sequence[Match]) -> Verdict:
    telling = [match for match in matches if match.signature is None]
    best = _informative(matches)
    silent = not telling and any(match.signature == NOTHING for match in matches)
    best = best or (telling[-1] if telling else None)
    return Verdict(
        failed=True,
        reason=NOTHING_LOGGED if silent else NO_SIGNATURE,
        confidence=_NOTHING if silent else 0.0,
        stream=best.stream or None if best else None,
        line_no=best.line_no if best else None,
        evidence=best.text if best else None,
    )
