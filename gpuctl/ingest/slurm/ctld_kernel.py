"""The compiled scanner of slurmctld.log: bytes in, the places of the few lines worth reading out.

It looks at the stamp at the front of each line and for words that only lines worth reading have; the two events that
are nearly all of them, a job that gets its nodes and a job that is done, it reads itself where they stand in their
plainest form. The same source runs uncompiled with ``NUMBA_DISABLE_JIT=1``.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner

_LF, _SPACE, _COLON, _DASH, _DOT, _OPEN, _CLOSE = 10, 32, 58, 45, 46, 91, 93
_STAMP = 20  # bytes of [YYYY-MM-DDTHH:MM:SS
_MOST_REST = 13  # bytes of a fraction and an offset
_MOST_DIGITS = 18
_ALLOCATE, _STARTED, _DONE = 0, 1, 2
_SENTENCES = (
    (b" sched: Allocate Job", _ALLOCATE),
    (b" sched/backfill: _start_job: Started Job", _STARTED),
    (b" sched/backfill: Started Job", _STARTED),
    (b" backfill: _start_job: Started Job", _STARTED),
    (b" backfill: Started Job", _STARTED),
    (b" _job_complete: Job", _DONE),
    (b" job_complete: Job", _DONE),
)


def table(words: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Lay words out for the scanner: all of them one after the other, and where each of them ends."""
    return np.frombuffer(b"".join(words), np.uint8), np.cumsum([len(word) for word in words]).astype(np.int64)


_OPENINGS, _OPENING_ENDS = table([words for words, _ in _SENTENCES])
_FORMS = np.array([form for _, form in _SENTENCES], np.int64)
_NODE_LIST, _ON, _IN, _IS_DONE = (np.frombuffer(word, np.uint8) for word in (b" NodeList=", b" on ", b" in ", b" done"))


@inner
def _number(buf, at, count):  # type: ignore[no-untyped-def]
    """The number in `count` digits, or -1 if one of them is none."""
    value = np.int64(0)
    for k in range(at, at + count):
        digit = np.int64(buf[k]) - 48
        if digit < 0 or digit > 9:
            return np.int64(-1)
        value = value * 10 + digit
    return value


@inner
def _stands(buf, at, end, word):  # type: ignore[no-untyped-def]
    """Whether a word stands at `at`."""
    if at + word.size > end:
        return False
    for k in range(word.size):
        if buf[at + k] != word[k]:
            return False
    return True


@inner
def _stamp_end(buf, at, end):  # type: ignore[no-untyped-def]
    """Where the stamp of a line ends; -1 if it has none."""
    if end - at <= _STAMP or buf[at] != _OPEN or buf[at + 5] != _DASH or buf[at + 8] != _DASH or buf[at + 11] != 84:
        return -1
    if buf[at + 14] != _COLON or buf[at + 17] != _COLON or _number(buf, at + 1, 4) < 0:
        return -1
    for k in (6, 9, 12, 15, 18):
        if _number(buf, at + k, 2) < 0:
            return -1
    for k in range(at + _STAMP, min(end, at + _STAMP + _MOST_REST + 1)):
        if buf[k] == _CLOSE:
            return k + 1
    return -1


@inner
def _millis(buf, at, body):  # type: ignore[no-untyped-def]
    """Milliseconds since 1970 on the stamp's own clock; -1 for a stamp in another form than Slurm's default."""
    if body - at != _STAMP + 5 or buf[at + _STAMP] != _DOT:
        return np.int64(-1)
    year, month, day = _number(buf, at + 1, 4), _number(buf, at + 6, 2), _number(buf, at + 9, 2)
    hour, minute, second = _number(buf, at + 12, 2), _number(buf, at + 15, 2), _number(buf, at + 18, 2)
    fraction = _number(buf, at + _STAMP + 1, 3)
    if year < 1971 or year > 2199 or month < 1 or month > 12 or day < 1:
        return np.int64(-1)
    if hour > 23 or minute > 59 or second > 59 or fraction < 0:
        return np.int64(-1)
    longest = 31 if month in (1, 3, 5, 7, 8, 10, 12) else 30
    if month == 2:
        longest = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    if day > longest:
        return np.int64(-1)
    # days since 1970, counting years from March so that the leap day comes last
    y = year - 1 if month <= 2 else year
    m = month + 9 if month <= 2 else month - 3
    days = 365 * y + y // 4 - y // 100 + y // 400 + (153 * m + 2) // 5 + day - 1 - 719468
    return ((days * 24 + hour) * 60 + minute) * 60000 + second * 1000 + fraction


@inner
def _job(buf, at, end):  # type: ignore[no-untyped-def]
    """The job of a line that describes one of the two events in its plainest form; -1 for any other line."""
    opening = _which(buf, at, end, _OPENINGS, _OPENING_ENDS)
    if opening < 0:
        return np.int64(-1)
    form = _FORMS[opening]
    at += _OPENING_ENDS[opening] - (_OPENING_ENDS[opening - 1] if opening else 0)
    if end - at < 4 or buf[at] != 73 or (buf[at + 1] | 32) != 100 or buf[at + 2] != 61:  # Id=, ID=
        return np.int64(-1)
    at += 3
    after = at
    while after < end and 48 <= buf[after] <= 57:
        after += 1
    # a zero in front would be lost
    if after == at or after - at > _MOST_DIGITS or buf[at] == 48:
        return np.int64(-1)
    job = _number(buf, at, after - at)
    if form == _DONE:
        return job if _stands(buf, after, end, _IS_DONE) else np.int64(-1)
    if form == _STARTED and _stands(buf, after, end, _IN):
        after += _IN.size
        first = after
        while after < end and buf[after] > _SPACE:
            after += 1
        if after == first:
            return np.int64(-1)
    word = _NODE_LIST if form == _ALLOCATE else _ON
    there = _stands(buf, after, end, word) and after + word.size < end and buf[after + word.size] > _SPACE
    return job if there else np.int64(-1)


@inner
def _which(buf, at, end, words, ends):  # type: ignore[no-untyped-def]
    """The number of the word that stands at `at`; -1 for none."""
    start = 0
    for k in range(ends.size):
        size = ends[k] - start
        if at + size <= end and buf[at] == words[start] and buf[at + 1] == words[start + 1]:
            same = 2
            while same < size and buf[at + same] == words[start + same]:
                same += 1
            if same == size:
                return k
        start = ends[k]
    return -1


@inner
def _grown(table):  # type: ignore[no-untyped-def]
    more = np.empty((table.shape[0], 2 * table.shape[1]), np.int64)
    more[:, : table.shape[1]] = table
    return more


@compiled
def scan(buf, hints, ends):  # type: ignore[no-untyped-def]
    """Find the lines worth reading.

    Args:
        buf: uint8 array of whole lines; the last may lack its line end.
        hints: uint8 array, the words that such lines have, one after the other; each of two bytes at least.
        ends: int64 array, where in `hints` each of them ends.

    Returns:
        hits, int64[6, n]: line (0-based), start, end (without the line end), number of the first hint in it, job and
        milliseconds since 1970 on the stamp's own clock (both -1 if the line is not in its plainest form);
        bad, int64[3, n]: line, start, end of lines without a stamp that are not blank; how many lines there are;
        how many of them are blank.
    """
    n = buf.size
    begins = np.zeros(1 << 16, np.bool_)
    for k in range(ends.size):
        start = ends[k - 1] if k else 0
        begins[np.int64(hints[start]) << 8 | np.int64(hints[start + 1])] = True
    hits, bad = np.empty((6, 1024), np.int64), np.empty((3, 64), np.int64)
    found = faults = lines = blanks = at = 0
    while at < n:
        end = at
        while end < n and buf[end] != _LF:
            end += 1
        body = _stamp_end(buf, at, end)
        if body < 0:
            first = at
            while first < end and (buf[first] == _SPACE or 9 <= buf[first] <= 13):
                first += 1
            if first == end:
                blanks += 1
            else:
                if faults == bad.shape[1]:
                    bad = _grown(bad)
                bad[0, faults], bad[1, faults], bad[2, faults] = lines, at, end
                faults += 1
        hint, i = -1, body
        while body >= 0 and i + 1 < end and hint < 0:
            if begins[np.int64(buf[i]) << 8 | np.int64(buf[i + 1])]:
                hint = _which(buf, i, end, hints, ends)
            i += 1
        if hint >= 0:
            if found == hits.shape[1]:
                hits = _grown(hits)
            job = _job(buf, body, end)
            millis = _millis(buf, at, body) if job >= 0 else np.int64(-1)
            hits[0, found], hits[1, found], hits[2, found], hits[3, found] = lines, at, end, hint
            hits[4, found], hits[5, found] = job if millis >= 0 else np.int64(-1), millis
            found += 1
        lines += 1
        at = end + 1
    return hits[:, :found], bad[:, :faults], lines, blanks
