"""One linear pass over a job's output: the signatures in it, and their positions.

All signatures and all forms of progress lines are compiled into one Hyperscan database, whose time per byte depends
neither on their number nor on the text. Only lines with a match are processed one by one. The stored lines are bounded:
a few lines per signature, and the end of the log.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import hyperscan
import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.joblogs import classified_endings, encodings, pattern_database, progress
from gpuctl.joblogs.evidence import Match, Scan, Step, stored_part
from gpuctl.joblogs.last_lines import LastLines
from gpuctl.joblogs.line_blocks import Block, before_traceback, spread
from gpuctl.joblogs.prefix import Prefix, prefix
from gpuctl.joblogs.process_ranks import ranks_of
from gpuctl.joblogs.progress_marks import KINDS
from gpuctl.joblogs.structure import FORMATS, managed_runtimes, workflows
from gpuctl.joblogs.structure.ending import PROGRAM_ERROR, messages
from gpuctl.joblogs.structure.loggers import MOST as JSON_MOST
from gpuctl.joblogs.table import CAUSES, LAST_WORDS, NOTHING, Signature, Table, Tier
from gpuctl.joblogs.templates import is_informative

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import tzinfo

    from gpuctl.joblogs.structure.ending import Format

CHUNK = 1 << 20
LONG_LINE = 1 << 18
"""A line over this many bytes is looked at in pieces that overlap by `OVERLAP`."""
OVERLAP = 4096
MOST_HITS = 3
"""Of each signature, so many of its first lines and so many of its last are kept."""
_LINE_LIMIT = 4096
_ANSI = re.compile(rb"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\-_])")
_RETURNS = bytes.maketrans(b"\r\x00", b"\n ")
_BLANKS = np.zeros(256, dtype=bool)
_BLANKS[[*b" \t\n^~"]] = True
_NO_PREFIX = Prefix(0, None, None)
_RANKED = re.compile(r"\[|\d{1,6}:\s")
_FRAMES = (
    rb'^[^\n]{0,80}  File "[^"\n]{1,300}", line \d',
    rb"^[^\n]{0,80}Traceback \(most recent call last\)",
    rb"^[^\n]{0,80}(?:During handling of the above exception, another|The above exception was the direct cause of)",
    rb'^[^\n]{0,80}"""$',
)
"""Lines of Python's tracebacks, which are no ordinary output."""
_RAISED = 5
"""An exception's line follows the last frame of its traceback within so many lines."""
_LABEL = re.compile(
    r"(?:error|exception|fatal|critical|severe|panic|abort(?:ed|ing)?|systemexit|exiting|stopping|giving up)[)\"']?"
    r"(?:[: ][\w.]{1,40})?(?: ?[:|,!-]{1,2}|\])"
    r"|(?-i:\b(?:ERROR|CRITICAL|FATAL|SEVERE)\b)",
    re.IGNORECASE,
)
"""What marks a line as an error's, before its words."""
_LABEL_WITHIN = 300
_LINE_START = re.compile(rb"(?<![\[\\])\^")
_BEHIND_PREFIX = rb"^(?:\\[[^\\]\n]{1,24}\\](?:<std\\w{3,4}>)?:? ?|\\d{1,6}: |\\([^)\n]{1,60}\\) )?"
"""An anchor stands at the beginning of a line, or behind the rank that a launcher puts there."""
_IGNORED_WORDS = (b"xception ignored", b"xception in ")
_STEP_TIER = "step"
_FRAME_TIER = "frame"
_ANCHOR_TIER = "anchor"
_CAUSE, _HARMLESS, _STEP, _OTHER, _ANCHOR, _FRAME = range(6)
DENSE = 200
"""Of a signature found in more lines of one block (a megabyte), so many are looked at; the rest are counted."""
ANCHORS = 40
"""Of a format that shows errors in more lines of one block, so many are read."""
ALL_STEPS = 20_000
"""So many lines of training progress of a log are all read."""
STEPS_A_BLOCK = 700
"""Past `ALL_STEPS`, so many a megabyte of those that describe a validation, and of the others, evenly spaced."""


class Scanner:
    """Compiled signatures. One is enough for any number of logs; not to be shared between threads.

    Args:
        table: the signatures.

    Raises:
        InputError: Hyperscan rejects a pattern; the message names its signature.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        worded = [entry for entry in table.signatures.values() if entry.pattern]
        self.entries: list[Signature | str] = [*worded]
        patterns = [entry.pattern.encode() for entry in worded]
        flags = [_flags(entry) for entry in worded]
        for tier, found in ((_FRAME_TIER, _FRAMES), (_STEP_TIER, progress.PATTERNS)):
            patterns += found
            flags += [hyperscan.HS_FLAG_MULTILINE] * len(found)
            self.entries += [tier] * len(found)
        self.formats: dict[int, Format] = {}
        for form in FORMATS:
            self.formats |= dict.fromkeys(range(len(patterns), len(patterns) + len(form.starts)), form)
            patterns += [_LINE_START.sub(_BEHIND_PREFIX, start) for start in form.starts]
            flags += [hyperscan.HS_FLAG_MULTILINE] * len(form.starts)
            self.entries += [_ANCHOR_TIER] * len(form.starts)
        # an ending's signature has no pattern: its number lies beyond those of patterns
        for entry in table.signatures.values():
            if not entry.pattern:
                self.entries.append(entry)
        self.numbers = {entry.id: n for n, entry in enumerate(self.entries) if isinstance(entry, Signature)}
        self.starts = {
            number: _words(entry)
            for number, entry in enumerate(self.entries)
            if isinstance(entry, Signature) and entry.start
        }
        self.labelled = [isinstance(entry, Signature) and entry.label for entry in self.entries]
        self.fallback = [entry.fallback if isinstance(entry, Signature) else 0 for entry in self.entries]
        self.success = [isinstance(entry, Signature) and entry.tier == Tier.SUCCESS for entry in self.entries]
        self.kinds = np.array([_kind(entry) for entry in self.entries], np.int8)
        try:
            self.database = pattern_database.database(patterns, flags)
        except hyperscan.error as error:
            self._blame(error)
            raise

    def scan(self, stream: BinaryIO, on_step: Callable[[Step], None] | None = None, zone: tzinfo | None = None) -> Scan:
        """Read a log from front to back.

        Args:
            stream: its bytes, decompressed.
            on_step: called with every line of training progress.
            zone: of timestamps without one; default UTC.

        Returns:
            the result; `Scan.matches` has at most 2 x `MOST_HITS` per signature.
        """
        log = _Log(self, on_step, zone or UTC)
        rest = b""
        pieces = encodings.chunks(stream, CHUNK)
        following = next(pieces, None)
        while following is not None:
            (chunk, size), following = following, next(pieces, None)
            log.result.size += size
            text = rest + chunk
            cut = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
            # the last line of a log belongs to the preceding text, whether it has an end or not
            cut = before_traceback(text, cut) if following is not None else cut and len(text)
            if cut:
                log.block(text[:cut])
                rest = text[cut:]
            elif len(text) > LONG_LINE:
                log.piece(text)
                rest = text[-OVERLAP:]
            else:
                rest = text
        if rest:
            log.block(rest)
        return log.finish()

    def find(self, line: str) -> set[str]:
        """Return the ids of all signatures found in one line, those of every tier."""
        data = line.encode()
        numbers: set[int] = set()
        self.database.scan(data, lambda number, _begin, _end, _flags, _context: numbers.add(number))
        begin = prefix(line).end
        marked = _LABEL.search(line, 0, _LABEL_WITHIN) is not None
        found = {
            entry.id: self.starts.get(number)
            for number in numbers
            if isinstance(entry := self.entries[number], Signature) and (marked or not entry.label)
        }
        return {name for name, words in found.items() if words is None or words.match(line, begin)}

    def signatures_in(self, texts: Iterable[str]) -> list[tuple[Signature, str]]:
        """Return the strongest signatures of causes in some texts, each with its text."""
        found: dict[str, tuple[Signature, str]] = {}
        for text in texts:
            entries = [self.table.signatures[name] for name in sorted(self.find(text))]
            if all(entry.tier != Tier.HARMLESS for entry in entries):
                for entry in entries:
                    if entry.tier in CAUSES and entry.tier != Tier.GENERIC:
                        found.setdefault(entry.id, (entry, text))
        weakest = min((entry.fallback for entry, _ in found.values()), default=0)
        return [one for one in found.values() if one[0].fallback == weakest]

    def check(self, signatures: Iterable[Signature]) -> None:
        """Check signatures against their own examples.

        Raises:
            InputError: an example does not match, or a line that must not match does; the message names the signature.
        """
        for signature in signatures:
            for line in signature.examples:
                if signature.id not in self.find(line):
                    raise InputError(f"signature {signature.id!r} does not find its own example {line!r}")
            for line in signature.never:
                if signature.id in self.find(line):
                    raise InputError(f"signature {signature.id!r} finds {line!r}, which it must not")

    def _blame(self, error: Exception) -> None:
        """Find the signature whose pattern does not compile, and raise an error that names it."""
        # the user's signatures are last, and gpuctl's compile
        for entry in reversed([*self.table.signatures.values()]):
            try:
                hyperscan.Database().compile(expressions=[entry.pattern.encode()], flags=[_flags(entry)])
            except hyperscan.error as fault:
                raise InputError(
                    f"signature {entry.id!r}: pattern {entry.pattern!r} cannot be compiled: {fault}",
                    hint="Hyperscan supports no look-around, back-references, or lazy repeats that matter",
                ) from error


class _Hit(NamedTuple):
    """A signature in a line.

    Attributes:
        row: of the block.
        number: of the signature.
        match: the part that is stored.
        raised: it is the last line of a traceback.
        alone: rank of the process whose ordinary lines are counted after it; None: those of the log.
    """

    row: int
    number: int
    match: Match
    raised: bool
    alone: int | None = None


@dataclass
class _SignatureLines:
    """The lines of one signature so far."""

    count: int = 0
    first: list[tuple[_Hit, int]] = field(default_factory=list)
    last: deque[tuple[_Hit, int]] = field(default_factory=lambda: deque(maxlen=MOST_HITS))
    last_line: int = 0


class _Log:
    """One pass over one log."""

    def __init__(self, scanner: Scanner, on_step: Callable[[Step], None] | None, zone: tzinfo) -> None:
        self.result = Scan()
        self._scanner = scanner
        self._database, self._entries = scanner.database, scanner.entries
        self._success = scanner.success
        self._labelled = scanner.labelled
        self._kinds, self._starts, self._fallback = scanner.kinds, scanner.starts, scanner.fallback
        self._on_step, self._zone = on_step, zone
        self._parser = progress.Parser(zone)
        self._found: dict[int, _SignatureLines] = {}
        self._ordinary: Counter[int | None] = Counter()
        """Ordinary lines read so far, of all (None) and of each process whose lines are marked with its rank."""
        self._step_key: tuple[object, ...] | None = None
        self._last_work: dict[int | None, int] = {}
        """Line on which a rank (None: not named) last showed progress."""
        self._before_bar: dict[int | None, int] = {}
        """The same without the log's last bar: a program that dies by an exception draws its bar once more."""
        self._good = 0
        self._frame = -_RAISED
        self._raised: dict[int | None, tuple[int, int]] = {}
        self._went_on: dict[int | None, int] = {}
        """Line of the last exception of a rank after which it went on, and raised another one."""
        self._tail = LastLines()
        self._in_long = False

    def block(self, raw: bytes) -> None:
        """Process whole lines; only the last line of a log may lack its end."""
        self.result.lines += self._scan(raw)
        self._in_long = False

    def piece(self, raw: bytes) -> None:
        """Process a part of a line over the limit; later calls pass the rest."""
        if not self._in_long:
            self.result.long_lines += 1
            self._in_long = True
        self._scan(raw)

    def _scan(self, raw: bytes) -> int:
        """Look at some bytes of a log; return how many line ends are in them."""
        base = self.result.lines
        if b"\x1b" in raw:
            raw = _ANSI.sub(b"", raw)
        returns = b"\r" in raw
        text = raw.translate(_RETURNS) if returns or b"\x00" in raw else raw
        hits: list[int] = []
        # flat: a million tuples would occupy the garbage collector
        self._database.scan(text, lambda number, _begin, end, _flags, _context: hits.extend((end, number)))
        codes = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(codes == 10)
        line_ends = np.flatnonzero(np.frombuffer(raw, np.uint8) == 10) if returns else ends
        starts = np.concatenate((np.zeros(1, np.int64), ends + 1))
        if starts[-1] == len(codes) and len(starts) > 1:
            starts = starts[:-1]
        plain = ~_BLANKS[codes[np.minimum(starts, max(len(codes) - 1, 0))]] if len(codes) else np.zeros(0, bool)
        ranks = ranks_of(text, codes, starts)
        self._tail.add(raw, base, len(line_ends))
        if hits:
            # a carriage return separates pieces of one line
            number_of = base + 1 + np.searchsorted(line_ends, starts)
            self._lines(np.array(hits, np.int64).reshape(-1, 2), Block(text, starts, plain, ranks, number_of))
        self._ordinary[None] += int(plain.sum())
        for rank, number in zip(*np.unique(ranks[plain], return_counts=True), strict=True):
            if rank >= 0:
                self._ordinary[int(rank)] += int(number)
        return len(line_ends)

    def _lines(self, hits: np.ndarray, block: Block) -> None:
        ends, numbers = hits.T
        # the end of a match lies within its line, so the byte before it shows which
        rows = np.searchsorted(block.starts, ends - 1, "right") - 1
        _, once = np.unique(rows * len(self._entries) + numbers, return_index=True)
        rows, numbers, ends = rows[once], numbers[once], ends[once]
        kinds = self._kinds[numbers]
        wanted = (kinds != _HARMLESS) & self._chosen(block, rows, numbers, kinds)
        frames = np.unique(rows[kinds == _FRAME])
        block.plain[frames] = block.plain[np.minimum(frames + 1, len(block.plain) - 1)] = False
        block = block._replace(frames=frames)
        # of frames nothing more is read; the place of one in a line with other matches counts
        wanted &= np.isin(rows, rows[wanted & (kinds != _FRAME)])
        needed = wanted | ((kinds == _HARMLESS) & np.isin(rows, rows[wanted]))
        grouped: dict[int, dict[int, int]] = {}
        for row, number, end in zip(*(part[needed].tolist() for part in (rows, numbers, ends)), strict=True):
            grouped.setdefault(row, {})[number] = end
        pending: list[_Hit] = []
        anchors: list[tuple[int, int]] = []
        for row, found in grouped.items():
            self._line(block, row, found, pending, anchors)
        if len(frames):
            self._frame = int(block.number_of[frames[-1]])
        if anchors:
            pending = sorted(self._endings(block, anchors, pending), key=lambda hit: hit.row)
        plain = np.flatnonzero(block.plain)
        order = np.argsort(block.ranks[plain], kind="stable")
        ranks, rows = block.ranks[plain][order], plain[order]  # rows by rank, and in order within each
        for hit in pending:
            rank = hit.match.rank if block.ranks[hit.row] >= 0 else None
            own = plain if rank is None else rows[slice(*np.searchsorted(ranks, [rank, rank + 1]))]
            seen = int(np.searchsorted(own, hit.row, "right"))
            self._add(hit._replace(alone=rank), self._ordinary[rank] + seen)

    def _chosen(self, block: Block, rows: np.ndarray, numbers: np.ndarray, kinds: np.ndarray) -> np.ndarray:
        """Select the lines to process one by one: all, unless one pattern matches very many lines of a block."""
        chosen = np.ones(len(rows), bool)
        steps = np.unique(rows[kinds == _STEP])
        self.result.step_lines += len(steps)
        if len(rows) <= DENSE:
            return chosen
        for number in np.flatnonzero(np.bincount(numbers[kinds == _ANCHOR], minlength=1) > ANCHORS):
            between = np.flatnonzero(numbers == number)[ANCHORS // 2 : -ANCHORS // 2]
            # an ignored error is no evidence, however often it is printed
            chosen[between] = [self._ignored_above(block, int(row)) for row in rows[between]]
        causes = kinds == _CAUSE
        harmless = np.isin(rows, rows[kinds == _HARMLESS])
        for number in np.flatnonzero(np.bincount(numbers[causes], minlength=1) > DENSE):
            places = np.flatnonzero(numbers == number)
            between = places[DENSE // 2 : -DENSE // 2]
            chosen[between] = False
            between = between[~harmless[between]]
            block.plain[rows[between]] = False
            if len(between):
                self._found.setdefault(int(number), _SignatureLines()).count += len(between)
        if self.result.step_lines > ALL_STEPS:
            most = max(1, len(block.text) * STEPS_A_BLOCK // CHUNK)
            validation = np.array([b"val" in block.text[slice(*block.bounds(row))] for row in steps], bool)
            read = np.concatenate([spread(steps[validation], most), spread(steps[~validation], most)])
            chosen[(kinds == _STEP) & ~np.isin(rows, read)] = False
        return chosen

    def _ignored_above(self, block: Block, row: int) -> bool:
        return any(word in block.text[block.starts[max(row - 3, 0)] : block.starts[row]] for word in _IGNORED_WORDS)

    def _line(
        self, block: Block, row: int, found: dict[int, int], pending: list[_Hit], anchors: list[tuple[int, int]]
    ) -> None:
        """Process one line with a match."""
        begin, stop = block.bounds(row)
        end, line_no = min(found.values()), int(block.number_of[row])
        window = max(begin, min(end - _LINE_LIMIT // 2, stop - _LINE_LIMIT))
        line = block.text[window : min(stop, window + _LINE_LIMIT)].decode("utf-8", "replace").rstrip()
        steps_only = all(self._kinds[number] == _STEP for number in found)
        head = _NO_PREFIX if window != begin or (steps_only and not _RANKED.match(line)) else prefix(line, self._zone)
        hits: list[int] = []
        tiers = set()
        for number in found:
            entry = self._entries[number]
            words = self._starts.get(number)
            if words is not None and (window != begin or words.match(line, head.end) is None):
                continue
            if self._labelled[number] and _LABEL.search(line, 0, _LABEL_WITHIN) is None:
                continue
            hits.append(number)
            tiers.add(entry if isinstance(entry, str) else entry.tier)
        if _ANCHOR_TIER in tiers:
            ends = [(row, number) for number in hits if self._kinds[number] == _ANCHOR]
            formats = self._scanner.formats
            anchors += [one for one in ends if Tier.HARMLESS not in tiers or formats[one[1]] is workflows.IGNORED]
        if Tier.HARMLESS in tiers:
            hits = [number for number in hits if self._kinds[number] != _CAUSE or self._success[number]]
            tiers -= set(CAUSES)
        if Tier.NOISE in tiers:
            block.plain[row] = False
        if Tier.RECOVERED in tiers:
            self._good = line_no
        causal = (*CAUSES, Tier.SUCCESS)
        causes = [n for n in hits if isinstance(entry := self._entries[n], Signature) and entry.tier in causal]
        if causes:
            weakest = min(self._fallback[n] for n in causes)
            causes = [n for n in causes if self._fallback[n] == weakest]
            block.plain[row] = False
            text = stored_part(line, end - window)
            above = int(np.searchsorted(block.frames, row, "right"))
            frame = int(block.number_of[block.frames[above - 1]]) if above else self._frame
            raised = 0 < line_no - frame <= _RAISED
            pending += [_Hit(row, n, Match(self._id(n), line_no, text, head.rank, ts=head.ts), raised) for n in causes]
        if _STEP_TIER in tiers and not tiers & set(CAUSES):
            self._step(line, line_no, head.rank)

    def _endings(self, block: Block, anchors: list[tuple[int, int]], pending: list[_Hit]) -> list[_Hit]:
        """Add the errors found by formats to the hits of a block, and remove those that the program survived."""
        formats = self._scanner.formats
        by_row: dict[int, list[_Hit]] = {}
        for hit in pending:
            by_row.setdefault(hit.row, []).append(hit)

        objects = {row for row, number in anchors if formats[number].name == "json"}

        @cache
        def line(row: int) -> str:
            begin, stop = block.bounds(row)
            most = JSON_MOST if row in objects else _LINE_LIMIT
            return block.text[begin : min(stop, begin + most)].decode("utf-8", "replace").rstrip()

        placed = classified_endings.place(
            [(row, formats[number]) for row, number in anchors], len(block.starts), line, self._zone
        )
        ignored: set[int] = set()
        for one in placed:
            block.plain[one.span] = False
            line_no = int(block.number_of[one.row])
            if one.ending.ignored:
                ignored.update(one.span)
                continue
            decoded = bool(one.ending.texts)  # matches in its encoded form do not count
            known = [
                entry
                for row in (() if decoded else classified_endings.message_rows(one))
                for hit in by_row.get(row, ())
                if isinstance(entry := self._entries[hit.number], Signature)
            ]
            inner = [] if classified_endings.strong(known) else self._scanner.signatures_in(one.texts)
            head = Match("", line_no, stored_part(one.line, 0), one.rank, ts=one.ts)
            if one.ending.rank is not None:
                head = head._replace(rank=one.ending.rank)
            every = known + [entry for entry, _ in inner]
            chosen = classified_endings.signature_id(one, every)
            stated = one.ending.reason in dict(one.format.reasons)
            added = [(entry.id, text) for entry, text in inner if not stated and (decoded or entry.fallback < 2)]
            added += [] if chosen is None else [(chosen, one.line)]
            if added:
                weaker = {
                    id(hit)
                    for row in one.span
                    for hit in by_row.get(row, ())
                    if decoded or stated or self._gives_way(hit)
                }
                pending = [hit for hit in pending if id(hit) not in weaker]
            if one.format in managed_runtimes.CHAINS and classified_endings.strong(known):
                # the innermost cause says more than the exceptions that wrap it
                outer = [row for row in one.span if row < one.row]
                wraps = {id(hit) for row in outer for hit in by_row.get(row, ()) if self._is_class(hit)}
                pending = [hit for hit in pending if id(hit) not in wraps]
            if self._scanner.table.learned:
                added += [(name, one.line) for name in classified_endings.readings(one, every)]
            raised = one.ending.rank is None  # a launcher's message is not an exception of the rank that it blames
            for name, text in added:
                match = head._replace(signature=name, text=stored_part(text, 0))
                pending.append(_Hit(one.row, self._scanner.numbers[name], match, raised))
        return [hit for hit in pending if hit.row not in ignored]

    def _gives_way(self, hit: _Hit) -> bool:
        """Return whether a hit names only a class or a death, and an ending states more."""
        entry = self._entries[hit.number]
        return isinstance(entry, Signature) and entry.tier in CAUSES and entry.fallback > 1

    def _is_class(self, hit: _Hit) -> bool:
        """Return whether a hit names a class of errors, and not what happened."""
        entry = self._entries[hit.number]
        return isinstance(entry, Signature) and (
            entry.fallback > 0 or (entry.tier == Tier.ERROR and entry.reason == PROGRAM_ERROR)
        )

    def _step(self, line: str, line_no: int, rank: int | None) -> None:
        for step in self._parser.read(line, line_no):
            if self._on_step is not None:
                self._on_step(step)
            if step.metric in KINDS:
                continue
            self.result.steps += 1
            # a bar is printed again when its program dies
            key = (step.epoch, step.step, step.metric, step.value)
            if key != self._step_key:
                self._step_key = key
                bar = step.elapsed_s is not None
                if self._last_work.get(rank) != line_no or not bar:
                    self._before_bar[rank] = self._last_work.get(rank, 0) if bar else line_no
                self._last_work[rank] = line_no

    def _id(self, number: int) -> str:
        entry = self._entries[number]
        return entry.id if isinstance(entry, Signature) else entry

    def _add(self, hit: _Hit, ordinary: int) -> None:
        match = hit.match
        found = self._found.setdefault(hit.number, _SignatureLines())
        if found.last_line == match.line_no and found.count:
            return
        found.count += 1
        found.last_line = match.line_no
        (found.first if len(found.first) < MOST_HITS else found.last).append((hit, ordinary))
        entry = self._entries[hit.number]
        if hit.raised and isinstance(entry, Signature) and entry.tier in {Tier.ROOT, Tier.ERROR}:
            # a process ends with an uncaught exception: one with ordinary output after it was caught
            line_no, before = self._raised.get(match.rank, (0, ordinary))
            if ordinary > before:
                self._went_on[match.rank] = line_no
            self._raised[match.rank] = (match.line_no, ordinary)

    def finish(self) -> Scan:
        """Return the result of the pass."""
        result = self.result
        result.lines += self._tail.open
        for found in self._found.values():
            for hit, ordinary in (*found.first, *found.last):
                after = self._ordinary[hit.alone] - ordinary
                worked = self._worked(hit, after)
                result.matches.append(hit.match._replace(ordinary_after=after, work_after=worked, times=found.count))
        result.matches.sort(key=lambda match: match.line_no)
        tiers = {entry.tier for n in self._found if isinstance(entry := self._entries[n], Signature)}
        if not tiers & {Tier.ROOT, Tier.ERROR, Tier.SYMPTOM}:
            result.telling = self._tail.telling()
            if not result.telling and not result.matches:
                result.matches.append(Match(NOTHING, result.lines and 1, ""))
            result.telling += self._last_words(result.telling)
        return result

    def _last_words(self, telling: Sequence[Match]) -> list[Match]:
        """Match candidate lines of a failure as if they were marked as errors."""
        found = []
        for line in telling:
            words = line.text[prefix(line.text).end :]
            inner = self._scanner.signatures_in(messages(words))
            reasons = dict.fromkeys(entry.reason for entry, _ in inner)
            found += [line._replace(signature=f"{LAST_WORDS}-in-{reason}") for reason in reasons]
            if not inner and is_informative(words):
                found.append(line._replace(signature=LAST_WORDS))
        return found

    def _worked(self, hit: _Hit, ordinary_after: int) -> bool:
        match = hit.match
        if self._good > match.line_no or (hit.raised and self._went_on.get(match.rank, 0) >= match.line_no):
            return True
        work = self._before_bar if hit.raised and not ordinary_after else self._last_work
        ranks = work if match.rank is None else {match.rank, None} & work.keys()
        return any(work[rank] > match.line_no for rank in ranks)


def _kind(entry: Signature | str) -> int:
    if isinstance(entry, str):
        return {_STEP_TIER: _STEP, _ANCHOR_TIER: _ANCHOR, _FRAME_TIER: _FRAME}[entry]
    return _CAUSE if entry.tier in {*CAUSES, Tier.SUCCESS} else _HARMLESS if entry.tier == Tier.HARMLESS else _OTHER


def _flags(entry: Signature) -> int:
    return int(hyperscan.HS_FLAG_MULTILINE | (hyperscan.HS_FLAG_CASELESS if entry.caseless else 0))


def _words(entry: Signature) -> re.Pattern[str]:
    try:
        return re.compile(entry.pattern, re.IGNORECASE if entry.caseless else 0)
    except re.error as error:
        raise InputError(f"signature {entry.id!r}: pattern {entry.pattern!r}: {error}") from error
