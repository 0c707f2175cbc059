"""The compiled scanner of ``time,node,value[,value…]`` lines; bytes in, arrays out.

It exists because telemetry is the big table: the scanner reads some 300 MB/s per core, and gives the line of
every row that it does not accept. The same source runs uncompiled with ``NUMBA_DISABLE_JIT=1``.
The compiled code is kept next to this file, or in the user's cache if that cannot be written to.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner

OK, BLANK = 0, 1
BAD_TIME, BAD_ZONE, BAD_MACHINE, TOO_FEW, TOO_MANY, BAD_VALUE, OUT_OF_RANGE, HEADER = 2, 3, 4, 5, 6, 7, 8, 9

REASONS = {
    BAD_TIME: "time is not YYYY-MM-DD HH:MM:SS with PDT, PST, UTC or no zone",
    BAD_ZONE: "unknown time zone (expected PDT, PST, UTC or none)",
    BAD_MACHINE: "node name is empty, longer than 255 bytes or not printable ASCII",
    TOO_FEW: "fewer fields than expected",
    TOO_MANY: "more fields than expected (records glued together?)",
    BAD_VALUE: "a value is not a number, NA or empty",
    OUT_OF_RANGE: "a value is outside its range",
    HEADER: "a header in the middle of the file",
}


_POW10 = 10.0 ** np.arange(23)
_COMMA, _CR, _LF, _SPACE = 44, 13, 10, 32
_NO_ZONE = np.int64(1) << 60
_SLOTS = 1 << 16  # hash slots for node names; a chunk with more than half as many names is scanned in two


@inner
def _digits(buf, start, count):  # type: ignore[no-untyped-def]
    """The number in `count` bytes from `start`, or -1 if one of them is no digit."""
    value = np.int64(0)
    for k in range(start, start + count):
        c = buf[k]
        if c < 48 or c > 57:
            return -1
        value = value * 10 + (np.int64(c) - 48)
    return value


@inner
def _timestamp(buf, start, end):  # type: ignore[no-untyped-def]
    """(seconds since 1970 on the stamp's own clock, seconds to add for UTC or _NO_ZONE, status) of a time field."""
    bad = (0, _NO_ZONE, BAD_TIME)
    length = end - start
    if length != 19 and length != 23:
        return bad
    if buf[start + 4] != 45 or buf[start + 7] != 45 or buf[start + 10] != _SPACE:
        return bad
    if buf[start + 13] != 58 or buf[start + 16] != 58:
        return bad
    year, month, day = _digits(buf, start, 4), _digits(buf, start + 5, 2), _digits(buf, start + 8, 2)
    hour, minute, second = _digits(buf, start + 11, 2), _digits(buf, start + 14, 2), _digits(buf, start + 17, 2)
    if year < 1970 or month < 1 or month > 12 or day < 1 or hour < 0 or hour > 23:
        return bad
    if minute < 0 or minute > 59 or second < 0 or second > 59:
        return bad
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    longest = 30 if month in (4, 6, 9, 11) else 31
    if month == 2:
        longest = 29 if leap else 28
    if day > longest:
        return bad
    # days since 1970-01-01 in the proleptic Gregorian calendar, counted in years that begin in March
    y = year - 1 if month <= 2 else year
    shifted = month + 9 if month <= 2 else month - 3
    days = y * 365 + y // 4 - y // 100 + y // 400 + (153 * shifted + 2) // 5 + day - 719469
    seconds = days * 86400 + hour * 3600 + minute * 60 + second
    if length == 19:
        return (seconds, _NO_ZONE, OK)
    if buf[start + 19] != _SPACE:
        return bad
    a, b, c = buf[start + 20], buf[start + 21], buf[start + 22]
    if a == 80 and c == 84 and b == 68:  # PDT
        return (seconds, np.int64(7 * 3600), OK)
    if a == 80 and c == 84 and b == 83:  # PST
        return (seconds, np.int64(8 * 3600), OK)
    if (a == 85 and b == 84 and c == 67) or (a == 71 and b == 77 and c == 84):  # UTC, GMT
        return (seconds, np.int64(0), OK)
    return (0, _NO_ZONE, BAD_ZONE)


@inner
def _number(buf, start, end):  # type: ignore[no-untyped-def]
    """(value, ok) of a field; NaN for an empty field, NA and NaN."""
    while start < end and buf[start] == _SPACE:
        start += 1
    while end > start and buf[end - 1] == _SPACE:
        end -= 1
    length = end - start
    if length == 0:
        return (np.nan, True)
    if length <= 3 and (buf[start] | 32) == 110 and (buf[start + 1] | 32) == 97:  # NA, NaN
        return (np.nan, length == 2 or (buf[start + 2] | 32) == 110)
    i = start
    negative = buf[i] == 45
    if negative or buf[i] == 43:
        i += 1
    mantissa, digits, fraction, seen = np.int64(0), 0, 0, 0
    point = False
    while i < end:
        c = buf[i]
        if 48 <= c <= 57:
            seen += 1
            if digits < 18:  # past 18 digits a double holds no more
                mantissa = mantissa * 10 + (c - 48)
                if mantissa > 0:
                    digits += 1
                if point:
                    fraction += 1
            elif not point:
                fraction -= 1
        elif c == 46 and not point:
            point = True
        else:
            break
        i += 1
    if seen == 0:
        return (0.0, False)
    if i < end:
        if (buf[i] | 32) != 101 or end - i < 2:  # e, E
            return (0.0, False)
        i += 1
        minus = buf[i] == 45
        if minus or buf[i] == 43:
            i += 1
        if i >= end or end - i > 3:
            return (0.0, False)
        exponent = _digits(buf, i, end - i)
        if exponent < 0:
            return (0.0, False)
        fraction += exponent if minus else -exponent
    if fraction > 22 or fraction < -22:  # powers of ten past 22 are no exact doubles anyway
        # in two steps: 10 ** -313 alone would be less than the least double, the value need not be
        step = min(fraction, 200)
        value = mantissa * 10.0 ** (-step) * 10.0 ** (step - fraction)
    else:
        value = mantissa / _POW10[fraction] if fraction >= 0 else mantissa * _POW10[-fraction]
    return (-value if negative else value, True)


@inner
def _lookup(buf, start, end, h, slots, name_start, name_end, names):  # type: ignore[no-untyped-def]
    """The number of a node name with hash `h` in this chunk; a new name gets the number `names`."""
    slot = np.int64((h ^ (h >> np.uint64(29))) & np.uint64(_SLOTS - 1))
    while True:
        code = slots[slot]
        if code < 0:
            slots[slot] = names
            name_start[names] = start
            name_end[names] = end
            return names
        if name_end[code] - name_start[code] == end - start:
            same = True
            for k in range(end - start):
                if buf[name_start[code] + k] != buf[start + k]:
                    same = False
                    break
            if same:
                return code
        slot = (slot + 1) & (_SLOTS - 1)


@inner
def _values(buf, at, values, used, least, most, low, high):  # type: ignore[no-untyped-def]
    """Read the values of an ordinary row, from the comma at `at` to its line end, in one pass.

    Returns:
        (how many values, index of the line end); (-1, 0) for a row with anything out of the ordinary in it,
        which `scan` then reads field by field. A line end must follow somewhere.
    """
    count = 0
    while True:
        at += 1
        c = buf[at]
        if c == _LF and count >= least:  # a trailing comma
            return (count, at)
        if count == most:
            return (-1, 0)
        if c == 78 and buf[at + 1] == 65:  # NA
            value = np.nan
            at += 2
            c = buf[at]
        else:
            mantissa, first, fraction = np.int64(0), at, 0
            while 48 <= c <= 57:
                mantissa = mantissa * 10 + (c - 48)
                at += 1
                c = buf[at]
            digits = at - first
            if c == 46:
                at += 1
                first = at
                c = buf[at]
                while 48 <= c <= 57:
                    mantissa = mantissa * 10 + (c - 48)
                    at += 1
                    c = buf[at]
                fraction = at - first
                digits += fraction
            if digits == 0 or digits > 15:  # 15 digits are exact in a double
                return (-1, 0)
            value = mantissa / _POW10[fraction]
            if value < low or value > high:
                return (-1, 0)
        values[used + count] = value
        count += 1
        if c == _LF:
            return (count, at) if count >= least else (-1, 0)
        if c != _COMMA:
            return (-1, 0)


@compiled
def scan(buf, lines, least, most, low, high):  # type: ignore[no-untyped-def]
    """Read whole lines of telemetry.

    Args:
        buf: uint8 array of whole lines; the last may lack its line end.
        lines: how many lines it holds.
        least: fewest values a row must have.
        most: most values a row may have; one empty field after them is a trailing comma.
        low: smallest value allowed.
        high: largest value allowed.

    Returns:
        rows, seconds (int64[rows], on the stamp's own clock), shift (int64[rows], to add for UTC; 1 << 60
        without a zone), codes (int32[rows], into the names), ends (int32[rows + 1], row r's values are
        values[ends[r]:ends[r + 1]]), values (float64, NaN for NA), name_start, name_end (int64[names], into
        buf), names, rejects, reject_line (0-based), reject_start, reject_end (into buf), reject_code, blanks,
        consumed (bytes read; fewer than given only if the name table was full).
    """
    n = buf.size
    seconds, shift = np.empty(lines, np.int64), np.empty(lines, np.int64)
    codes, ends = np.empty(lines, np.int32), np.empty(lines + 1, np.int32)
    values = np.empty(lines * most, np.float64)
    slots = np.full(_SLOTS, -1, np.int32)
    name_start, name_end = np.empty(_SLOTS // 2, np.int64), np.empty(_SLOTS // 2, np.int64)
    reject_line, reject_start = np.empty(lines, np.int64), np.empty(lines, np.int64)
    reject_end, reject_code = np.empty(lines, np.int64), np.empty(lines, np.int8)
    rows = names = rejects = blanks = used = line = 0
    ends[0] = 0
    known_start, known_length = -1, 0  # the time field of the last row: the next one is nearly always the same
    known_seconds, known_shift = np.int64(0), np.int64(0)
    last_end = n - 1
    while last_end >= 0 and buf[last_end] != _LF:
        last_end -= 1
    i = 0
    while i < n and names < _SLOTS // 2:
        start = i
        # the ordinary row: the time of the row before, a name, plain numbers
        if known_start >= 0 and start + known_length < last_end and buf[start + known_length] == _COMMA:
            same = True
            for k in range(known_length):
                if buf[known_start + k] != buf[start + k]:
                    same = False
                    break
            if same:
                m = start + known_length + 1
                j = m
                h = np.uint64(14695981039346656037)
                while _SPACE < buf[j] < 127 and buf[j] != _COMMA:
                    h = (h ^ np.uint64(buf[j])) * np.uint64(1099511628211)
                    j += 1
                if buf[j] == _COMMA and m < j <= m + 255:
                    count, end = _values(buf, j, values, used, least, most, low, high)
                    if count >= 0:
                        code = _lookup(buf, m, j, h, slots, name_start, name_end, names)
                        if code == names:
                            names += 1
                        seconds[rows] = known_seconds
                        shift[rows] = known_shift
                        codes[rows] = code
                        used += count
                        rows += 1
                        ends[rows] = used
                        line += 1
                        i = end + 1
                        continue
        end = start
        while end < n and buf[end] != _LF:
            end += 1
        i = end + 1
        if end > start and buf[end - 1] == _CR:
            end -= 1
        this_line = line
        line += 1
        if end == start:
            blanks += 1
            continue
        status = OK
        j = start
        while j < end and buf[j] != _COMMA:
            j += 1
        same = known_start >= 0 and j - start == known_length
        if same:
            for k in range(known_length):
                if buf[known_start + k] != buf[start + k]:
                    same = False
                    break
        if not same:
            known_seconds, known_shift, status = _timestamp(buf, start, j)
            known_start, known_length = (start, j - start) if status == OK else (-1, 0)
            if status != OK and j - start == 4 and buf[start] == 116 and buf[start + 1] == 105:  # "time"
                status = HEADER
        count = 0
        code = -1
        if status == OK:
            m = j + 1
            j = m
            while j < end and buf[j] != _COMMA:
                j += 1
            h = np.uint64(14695981039346656037)
            for k in range(m, j):
                if buf[k] <= _SPACE or buf[k] > 126:
                    status = BAD_MACHINE
                h = (h ^ np.uint64(buf[k])) * np.uint64(1099511628211)
            if j <= m or j > m + 255:
                status = BAD_MACHINE
            if status == OK:
                code = _lookup(buf, m, j, h, slots, name_start, name_end, names)
                if code == names:
                    names += 1
        while status == OK and j < end:
            f = j + 1
            j = f
            while j < end and buf[j] != _COMMA:
                j += 1
            if f == end and count >= least:  # a trailing comma
                break
            if count == most:
                status = TOO_MANY
                break
            value, good = _number(buf, f, j)
            if not good:
                status = BAD_VALUE
            elif value < low or value > high:
                status = OUT_OF_RANGE
            else:
                values[used + count] = value
                count += 1
        if status == BAD_VALUE or status == OUT_OF_RANGE:  # too many fields states more than what is in them
            fields = count + 1
            while j < end:
                fields += buf[j] == _COMMA
                j += 1
            if fields > most + 1:
                status = TOO_MANY
        if status == OK and count < least:
            status = TOO_FEW
        if status != OK:
            reject_line[rejects] = this_line
            reject_start[rejects] = start
            reject_end[rejects] = end
            reject_code[rejects] = status
            rejects += 1
            continue
        seconds[rows] = known_seconds
        shift[rows] = known_shift
        codes[rows] = code
        used += count
        rows += 1
        ends[rows] = used
    return (
        rows, seconds[:rows], shift[:rows], codes[:rows], ends[: rows + 1], values[:used],
        name_start[:names], name_end[:names], names,
        rejects, reject_line, reject_start, reject_end, reject_code, blanks, min(i, n),
    )  # fmt: skip
