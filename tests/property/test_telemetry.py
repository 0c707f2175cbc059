"""The compiled scanner against Python's own csv, float and datetime."""

from __future__ import annotations

import csv
import io
import math
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.ingest.philly import telemetry_kernel as kernel

ZONES = {"PDT": timezone(timedelta(hours=-7)), "PST": timezone(timedelta(hours=-8)), "UTC": UTC}
VALUES = st.one_of(
    st.floats(0, 100).map(repr),
    st.floats(0, 100).map(lambda v: f"{v:.9f}"),
    st.integers(0, 100).map(str),
    st.sampled_from(
        [
            "NA",
            "",
            "nan",
            "0.0",
            "1e-05",
            "1E1",
            "+5",
            "00012.5",
            "5.",
            ".5",
            "9" * 18 + "e-17",
            "6.750648537875487e-298",
        ]
    ),
)
ROWS = st.tuples(
    st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1)).map(lambda t: t.replace(microsecond=0)),
    st.sampled_from(sorted(ZONES)),
    st.text("abcXYZ0189-_.[]", min_size=1, max_size=12),
    st.lists(VALUES, min_size=1, max_size=8),
    st.booleans(),
)


def scan(data: bytes, most: int = 8) -> tuple[np.ndarray, ...]:
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    found: tuple[np.ndarray, ...] = kernel.scan(np.frombuffer(data, np.uint8), lines, 1, most, 0.0, 100.0)
    return found


@given(st.lists(ROWS, min_size=1, max_size=20), st.sampled_from(["\n", "\r\n"]))
def test_same_as_python(rows: list[tuple[datetime, str, str, list[str], bool]], end: str) -> None:
    text = "".join(
        f"{at:%Y-%m-%d %H:%M:%S} {zone},{name},{','.join(values)}{',' if comma or values[-1] == '' else ''}{end}"
        for at, zone, name, values, comma in rows
    ).replace("  ", " ")
    found = scan(text.encode())
    assert found[0] == len(rows), text
    assert found[9] == 0
    seconds, shift, codes, ends, values = found[1:6]
    names = [text.encode()[a:b].decode() for a, b in zip(found[6], found[7], strict=True)]
    for k, ((at, zone, name, _, _), cells) in enumerate(zip(rows, csv.reader(io.StringIO(text)), strict=True)):
        assert seconds[k] + shift[k] == at.replace(tzinfo=ZONES[zone]).timestamp()
        assert names[codes[k]] == name
        expected = cells[2:-1] if cells[-1] == "" else cells[2:]
        got = values[ends[k] : ends[k + 1]].tolist()
        assert len(got) == len(expected)
        for text_value, value in zip(expected, got, strict=True):
            if text_value in {"NA", "", "nan"}:
                assert math.isnan(value)
            else:
                # powers of ten past 22 are no exact doubles; what is stored has 24 bits (utilization) or whole kB
                assert math.isclose(value, float(text_value), rel_tol=1e-12, abs_tol=1e-300)


@given(st.binary(min_size=1, max_size=400))
def test_any_bytes_are_rows_rejects_or_blank(data: bytes) -> None:
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    found = scan(data)
    assert found[0] + found[9] + found[14] == lines
    assert found[15] == len(data)


@given(
    st.text("0123456789-: PDTS,mNAe.+\n", max_size=120),
    st.integers(0, 60),
)
def test_damaged_rows_never_lose_count(junk: str, cut: int) -> None:
    row = "2017-10-03 00:08:00 PDT,m29,60.8,99.366666667,\n"
    data = (row + row[:cut] + junk + "\n" + row).encode()
    found = scan(data)
    assert found[0] + found[9] + found[14] == data.count(b"\n")
    assert found[0] >= 2
