"""The compiled scanner of YARN's logs: bytes in, the places of the few lines worth reading out.

Most bytes of a ResourceManager log are not about jobs. The scanner reads only the date at the front of each line and
the first bytes of its message. The same source runs uncompiled with ``NUMBA_DISABLE_JIT=1``.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner

_LF, _CR, _SPACE, _TAB, _COLON = 10, 13, 32, 9, 58
_LONGEST_THREAD = 300
NO_DATE = np.int64(-1) << 62
TORN = 1 << 20
"""Added to the kind of a record that another one follows on its line: its own end is lost."""


@inner
def _two(buf, at):  # type: ignore[no-untyped-def]
    """The number in two digits, or -1000 if they are none."""
    high, low = np.int64(buf[at]) - 48, np.int64(buf[at + 1]) - 48
    return high * 10 + low if 0 <= high <= 9 and 0 <= low <= 9 else np.int64(-1000)


@inner
def _millis(year, month, day, hour, minute, second):  # type: ignore[no-untyped-def]
    """Milliseconds since 1970 on the clock of the stamp; NO_DATE if there is no such time."""
    if month < 1 or month > 12 or day < 1 or hour < 0 or minute < 0 or second < 0:
        return NO_DATE
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 31 if month in (1, 3, 5, 7, 8, 10, 12) else 30
    if month == 2:
        longest = 29 if leap else 28
    if day > longest or hour > 23 or minute > 59 or second > 59:
        return NO_DATE
    # days since 1970-01-01, counting years from March so that the leap day comes last
    y = year - 1 if month <= 2 else year
    m = month + 9 if month <= 2 else month - 3
    days = 365 * y + y // 4 - y // 100 + y // 400 + (153 * m + 2) // 5 + day - 1 - 719468
    return ((days * 24 + hour) * 60 + minute) * 60000 + second * 1000


@inner
def _named_level(buf, at, n):  # type: ignore[no-untyped-def]
    """Whether one of log4j's levels stands at `at`, and a blank after it: a zone (``UTC``) is none."""
    end = at
    while end < n and end < at + 6 and 65 <= buf[end] <= 90:
        end += 1
    if end >= n or buf[end] != _SPACE:
        return False
    first, second, length = buf[at], buf[at + 1], end - at
    if length == 4:
        return (first == 73 and second == 78) or (first == 87 and second == 65)  # INFO, WARN
    # ERROR, DEBUG, FATAL, TRACE
    return length == 5 and (
        (first == 69 and second == 82)
        or (first == 68 and second == 69)
        or (first == 70 and second == 65)
        or (first == 84 and second == 82)
    )


@inner
def _blanks(buf, at, end):  # type: ignore[no-untyped-def]
    """Where the next byte that is no blank stands."""
    while at < end and buf[at] == _SPACE:
        at += 1
    return at


@inner
def _after_thread(buf, at, end):  # type: ignore[no-untyped-def]
    """What follows ``[thread]`` and its blanks, where one stands at `at`; else `at`."""
    if at >= end or buf[at] != 91:
        return at
    i, last = at, min(end - 1, at + _LONGEST_THREAD)
    while i < last and buf[i] != _LF:
        if buf[i] == 93 and buf[i + 1] == _SPACE:
            return _blanks(buf, i + 1, end)
        i += 1
    return at


@inner
def _zone(buf, at, end):  # type: ignore[no-untyped-def]
    """(milliseconds ahead of UTC, where it ends, whether it states so) of a zone behind the time that ends at `at`.

    Read are ``Z``, ``+0530`` and ``+05:30``, with a blank before them or none, ``UTC`` and ``GMT``. Other names
    (``IST``) stand for several zones: they are skipped, and the time is the host's own.
    """
    none = (np.int64(0), at, False)
    i = at + 1 if at < end and buf[at] == _SPACE else at
    if i + 2 >= end:
        return none
    if buf[i] == 43 or buf[i] == 45:
        colon = 1 if i + 3 < end and buf[i + 3] == _COLON else 0
        if i + 5 + colon >= end or buf[i + 5 + colon] != _SPACE:
            return none
        hours, minutes = _two(buf, i + 1), _two(buf, i + 3 + colon)
        if hours < 0 or hours > 18 or minutes < 0 or minutes > 59:
            return none
        ahead = (hours * 60 + minutes) * 60000
        return (ahead if buf[i] == 43 else -ahead), i + 5 + colon, True
    stop = i
    while stop < end and stop < i + 6 and 65 <= buf[stop] <= 90:
        stop += 1
    length = stop - i
    if length == 0 or length == 6 or stop >= end or buf[stop] != _SPACE or _named_level(buf, i, end):
        return none
    if not _named_level(buf, _after_thread(buf, _blanks(buf, stop, end), end), end):
        return none
    utc = length == 1 and buf[i] == 90
    if length == 3:
        utc = (buf[i] == 85 and buf[i + 1] == 84 and buf[i + 2] == 67) or (
            buf[i] == 71 and buf[i + 1] == 77 and buf[i + 2] == 84
        )
    return np.int64(0), stop, utc


@inner
def _has_level(buf, at, end):  # type: ignore[no-untyped-def]
    """Whether a level follows a time that ends at `at`, with a zone and a thread between them or not."""
    _, after, _ = _zone(buf, at, end)
    return after < end and _named_level(buf, _after_thread(buf, _blanks(buf, after, end), end), end)


@inner
def _date(buf, at, end):  # type: ignore[no-untyped-def]
    """(milliseconds since 1970 on the stamp's own clock, where the stamp ends) of a line; NO_DATE if it has none."""
    none = (NO_DATE, at)
    if end - at < 18 or buf[at] < 48 or buf[at] > 57:
        return none
    if buf[at + 2] == 47:  # 18/08/22 07:21:56
        if buf[at + 5] != 47 or buf[at + 8] != _SPACE or buf[at + 11] != _COLON or buf[at + 14] != _COLON:
            return none
        year, month, day = 2000 + _two(buf, at), _two(buf, at + 3), _two(buf, at + 6)
        return _millis(year, month, day, _two(buf, at + 9), _two(buf, at + 12), _two(buf, at + 15)), at + 17
    if end - at < 24 or buf[at + 4] != 45 or buf[at + 7] != 45 or (buf[at + 10] != _SPACE and buf[at + 10] != 84):
        return none
    if buf[at + 13] != _COLON or buf[at + 16] != _COLON:
        return none
    year = _two(buf, at) * 100 + _two(buf, at + 2)
    if year < 1971:
        return none
    whole = _millis(
        year, _two(buf, at + 5), _two(buf, at + 8), _two(buf, at + 11), _two(buf, at + 14), _two(buf, at + 17)
    )
    if buf[at + 19] != 44 and buf[at + 19] != 46:  # a pattern without milliseconds
        return (whole if _has_level(buf, at + 19, end) else NO_DATE), at + 19
    third = np.int64(buf[at + 22]) - 48
    fraction = _two(buf, at + 20) * 10 + third
    if fraction < 0 or third < 0 or third > 9:
        return none
    return (whole + fraction if whole != NO_DATE else whole), at + 23


@inner
def _message(buf, at, end):  # type: ignore[no-untyped-def]
    """Where the message of a line begins, the date being before `at`; `end` if no logger is found.

    The layouts are ``LEVEL logger: message``, ``LEVEL [thread] logger: message``, ``[thread] LEVEL logger: message``
    and ``LEVEL  [thread] logger (File.java:method(12)) - message``.
    """
    i = _after_thread(buf, _blanks(buf, at, end), end)
    while i < end and buf[i] != _SPACE:  # the level
        i += 1
    i = _after_thread(buf, _blanks(buf, i, end), end)
    while i < end and buf[i] != _SPACE:  # the logger
        i += 1
    if i >= end:
        return end
    if buf[i - 1] == _COLON:
        return i + 1
    if buf[i + 1] == 40:
        last = min(end - 3, i + 300)
        while i < last:
            if buf[i] == _SPACE and buf[i + 1] == 45 and buf[i + 2] == _SPACE:
                return i + 3
            i += 1
    return end


@inner
def _kind(buf, at, end, marks, ends):  # type: ignore[no-untyped-def]
    """The number of the mark that stands at `at`, or after the first word as `scan` has it; -1 for none."""
    second = at
    while second < end and buf[second] != _SPACE:
        second += 1
    an_id = end - at > 12 and (buf[at] == 97 or buf[at] == 99) and (buf[at + 1] == 112 or buf[at + 1] == 111)
    for k in range(ends.size):
        start = ends[k - 1] if k else 0
        i = at
        if marks[start] == _TAB:
            start += 1
            i = second
        elif marks[start] == _SPACE:
            if not an_id:
                continue
            i = second
        length = ends[k] - start
        if i + length > end or buf[i] != marks[start]:
            continue
        same = True
        for j in range(length):
            if buf[i + j] != marks[start + j]:
                same = False
                break
        if same:
            return k
    return -1


@inner
def _follows(buf, at, n, marks, ends):  # type: ignore[no-untyped-def]
    """Whether a record begins at `at`, within a line: a date, a level, and, after a blank, a message that is wanted.

    A date of the console's form has no milliseconds, so it takes a level by name; ``2018/08/22`` is like one after a
    blank.
    """
    before = buf[at - 1]
    if before == 34 or before == 39 or before == 40 or before == 60 or before == 61 or before == 91:
        return False  # a quotation
    millis, after = _date(buf, at, n)
    if millis == NO_DATE:
        return False
    _, after, _ = _zone(buf, after, n)
    if after + 3 >= n or buf[after] != _SPACE:
        return False
    level = _after_thread(buf, after + 1, n)
    if level + 1 >= n or not (65 <= buf[level] <= 90 and 65 <= buf[level + 1] <= 90):
        return False
    console = buf[at + 2] == 47
    if (console or level > after + 1) and not _named_level(buf, level, n):
        return False
    long_year = console and at > 2 and buf[at - 3] == _SPACE and buf[at - 2] == 50 and before == 48
    if before != _SPACE and not long_year:
        return True
    end = after
    while end < n and buf[end] != _LF:
        end += 1
    message = _message(buf, after, end)
    return message < end and _kind(buf, message, end, marks, ends) >= 0


@compiled
def gather(buf, starts, ends, out):  # type: ignore[no-untyped-def]
    """Copy stretches of `buf` one after the other into `out`, which has room for just them."""
    to = 0
    for k in range(starts.size):
        for i in range(starts[k], ends[k]):
            out[to] = buf[i]
            to += 1


@compiled
def scan(buf, marks, ends):  # type: ignore[no-untyped-def]
    """Find the lines worth reading.

    Args:
        buf: uint8 array of whole lines; the last may lack its line end.
        marks: uint8 array, the beginnings of messages that are wanted, one after the other. One that begins with a
            blank stands after the first word of the message, which is an id of an application, attempt or container;
            one that begins with a TAB and a blank stands after a first word of any kind.
        ends: int64 array, where in `marks` each of them ends.

    Returns:
        found; int64[6, >= found], for each line found: line (0-based), start, message, end (into buf; without the
        line end), kind (number of the mark), millis (of the line's date, on its own clock, or in UTC if it states
        its zone); then how many records have a date, how many lines there are, how many of them that are not blank
        come before the first dated one, and how many records state their zone. Where a line end is missing between
        two records, both are distinguished, and the first one's kind has `TORN` added.
    """
    n = buf.size
    room = 1024
    out = np.empty((6, room), np.int64)
    found = lines = dated = before_text = zoned = 0
    at = 0
    while at < n:
        end = at
        torn = False
        while end < n and buf[end] != _LF:
            # the first dash of a date further on
            dash = buf[end] == 45 and end > at + 4 and end + 20 < n and buf[end + 3] == 45 and buf[end + 9] == _COLON
            if dash and _follows(buf, end - 4, n, marks, ends):
                end -= 4
                torn = True
                break
            # the first slash of one of the console's form
            slash = buf[end] == 47 and end > at + 2 and end + 15 < n and buf[end + 3] == 47 and buf[end + 9] == _COLON
            if slash and _follows(buf, end - 2, n, marks, ends):
                end -= 2
                torn = True
                break
            end += 1
        stop = end - 1 if end > at and buf[end - 1] == _CR else end
        millis, after = _date(buf, at, stop)
        if millis == NO_DATE:
            if dated == 0:
                before_text += stop > at
        else:
            dated += 1
            ahead, after, states_zone = _zone(buf, after, stop)
            zoned += states_zone
            message = _message(buf, after, stop)
            kind = _kind(buf, message, stop, marks, ends) if message < stop else -1
            if kind >= 0:
                if found == room:
                    room *= 2
                    more = np.empty((6, room), np.int64)
                    more[:, :found] = out
                    out = more
                out[0, found] = lines
                out[1, found] = at
                out[2, found] = message
                out[3, found] = stop
                out[4, found] = kind + TORN if torn else kind
                out[5, found] = millis - ahead
                found += 1
        lines += not torn
        at = end if torn else end + 1
    return found, out, dated, lines, before_text, zoned
