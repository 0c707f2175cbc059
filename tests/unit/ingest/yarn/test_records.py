"""The scanner of log records: what it counts, what it hands on, what it rejects."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import numpy as np
import pytest

from gpuctl.core.line_reader import GLUED, LINE_TOO_LONG, NOT_UTF8, RowError
from gpuctl.ingest.yarn import lines as module
from gpuctl.ingest.yarn import scan_kernel
from gpuctl.ingest.yarn.lines import NO_DATE, NO_END, Hit, read_records

MARKS = (b" State change from ", b"USER=", b"Accepted application ")
DATE = b"2018-11-14 12:38:59,329"


class Counts:
    """A sink that only counts."""

    def __init__(self) -> None:
        self.rows_in = self.rows_loaded = 0
        self.rejects: list[tuple[int, str]] = []

    def seen(self, rows: int = 1) -> None:
        self.rows_in += rows

    def loaded(self, rows: int = 1) -> None:
        self.rows_loaded += rows

    def reject(self, line_no: int, reason: str, raw: bytes | str) -> None:
        self.rejects.append((line_no, reason))


def read(data: bytes) -> tuple[list[Hit], Counts]:
    hits: list[Hit] = []
    sink = Counts()

    def take(hit: Hit) -> None:
        if "bad" in hit.text:
            raise RowError("bad")
        hits.append(hit)

    read_records(io.BytesIO(data), sink, MARKS, take)  # type: ignore[arg-type]
    assert sink.rows_in == sink.rows_loaded + len(sink.rejects)
    return hits, sink


@pytest.mark.parametrize(
    "head",
    [
        DATE + b" INFO org.apache.x.Y: ",
        DATE.replace(b",", b".").replace(b" ", b"T") + b" INFO org.apache.x.Y: ",
        DATE + b" WARN [IPC Server handler 3 on 8032] org.apache.x.Y: ",
        DATE + b" INFO  [main] rmcontainer.RMContainerImpl (RMContainerImpl.java:handle(380)) - ",
        DATE + b" [IPC Server handler 3 on 8032] WARN  org.apache.x.Y: ",
        DATE + b" [main] INFO  rmcontainer.RMContainerImpl (RMContainerImpl.java:handle(380)) - ",
        DATE + b" IST INFO org.apache.x.Y: ",
    ],
)
def test_layouts(head: bytes) -> None:
    hits, _ = read(head + b"USER=u\n")
    assert hits == [Hit(1, 1542199139329, "USER=u")]


@pytest.mark.parametrize("head", [b" INFO a.B: ", b" [main] INFO  a.B: ", b" ERROR [main] a.B: ", b"Z INFO a.B: "])
def test_dates_without_milliseconds(head: bytes) -> None:
    hits, sink = read(DATE[:19] + head + b"USER=u\n" + DATE[:19] + b" what it said\n")
    assert (hits, sink.rows_in) == ([Hit(1, 1542199139000, "USER=u")], 1)


@pytest.mark.parametrize(
    ("zone", "ahead_s"),
    [(b"Z", 0), (b" UTC", 0), (b" GMT", 0), (b"+0530", 19800), (b" -08:00", -28800), (b" +0000", 0)],
)
@pytest.mark.parametrize("thread", [b"", b"[main] "])
def test_a_date_that_states_its_zone_is_read_in_utc(zone: bytes, ahead_s: int, thread: bytes) -> None:
    hits: list[Hit] = []
    log = DATE + zone + b" " + thread + b"INFO a.B: USER=u\n" + DATE + b" INFO a.B: x\n"
    zoned = read_records(io.BytesIO(log), Counts(), MARKS, hits.append)  # type: ignore[arg-type]
    assert (zoned, hits) == (1, [Hit(1, 1542199139329 - 1000 * ahead_s, "USER=u")])


def test_console_layout() -> None:
    hits, _ = read(b"18/11/14 12:38:59 INFO nodemanager.NMAuditLogger: USER=u\r\n")
    assert hits == [Hit(1, 1542199139000, "USER=u")]


def test_continuations_belong_to_their_record() -> None:
    log = DATE + b" INFO a.B: x\n  at y\n\nCaused by: z\n" + DATE + b" INFO a.B: USER=u\nmore\n"
    hits, sink = read(log)
    assert [hit.text for hit in hits] == ["USER=u"]
    assert (sink.rows_in, sink.rows_loaded) == (2, 2)


def test_marks_that_stand_after_an_id() -> None:
    base = DATE + b" INFO a.B: "
    hits, sink = read(
        b"".join(
            base + text + b"\n"
            for text in (b"app_1 State change from A", b" State change from A", b"x State change from")
        )
    )
    assert [hit.text for hit in hits] == ["app_1 State change from A"]
    assert sink.rows_in == 3


def test_lines_before_the_first_date_are_one_reject() -> None:
    _, sink = read(b"\n at x\n at y\n" + DATE + b" INFO a.B: x\n")
    assert sink.rejects == [(1, NO_DATE)]
    assert (sink.rows_in, sink.rows_loaded) == (2, 1)
    _, sink = read(b"\n\n" + DATE + b" INFO a.B: x\n")
    assert sink.rejects == []


def test_rejects_have_their_line() -> None:
    base = DATE + b" INFO a.B: "
    _, sink = read(base + b"x\n" + base + b"USER=bad\n y\n" + base + b"USER=\xff\n" + base + b"USER=u")
    assert sink.rejects == [(2, "bad"), (4, NOT_UTF8), (5, NO_END)]
    assert (sink.rows_in, sink.rows_loaded) == (4, 1)


def test_records_of_no_interest_may_hold_anything_and_end_anywhere() -> None:
    _, sink = read(DATE + b" INFO a.B: \xff\x00\n" + DATE + b" INF")
    assert (sink.rows_in, sink.rows_loaded) == (2, 2)


def test_chunks_and_long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 100)
    monkeypatch.setattr(module, "_LONGEST", 500)
    base = DATE + b" INFO a.B: "
    parts = [base + b"USER=u%d\n" % i for i in range(20)]
    long = base + b"y" * 2000 + b"\n"
    hits, sink = read(b"".join([*parts[:10], long, b"z" * 2000 + b"\n", *parts[10:]]))
    assert [hit.text for hit in hits] == [f"USER=u{i}" for i in range(20)]
    assert sink.rejects == [(11, LINE_TOO_LONG)]
    assert sink.rows_in == 21


@pytest.mark.parametrize(
    "stamp",
    ["2018-02-29 00:00:00,000", "2018-13-01 00:00:00,000", "2018-01-01 24:00:00,000", "2018-01-01 00:00:00,00x"],
)
def test_a_line_without_a_date_continues_a_record(stamp: str) -> None:
    _, sink = read(DATE + b" INFO a.B: x\n" + stamp.encode() + b" INFO a.B: USER=u\n")
    assert sink.rows_in == 1


def test_every_day_of_centuries() -> None:
    day = datetime(1999, 12, 1)
    while day < datetime(2101, 4, 1):
        text = day.strftime("%Y-%m-%d %H:%M:%S,007").encode()
        millis, end = scan_kernel._date(np.frombuffer(text + b" ", np.uint8), 0, len(text) + 1)
        assert (millis, end) == ((day - datetime(1970, 1, 1)) / timedelta(milliseconds=1) + 7, 23), text
        day += timedelta(days=1, hours=1, minutes=1, seconds=1)
        if day.month in (4, 7, 10):
            day += timedelta(days=50)


@pytest.mark.parametrize("cut", [30, 45, 60, 75, 80])
@pytest.mark.parametrize("first", ["USER=eve OPERATION=Submit APPID=a", "nothing that is wanted, at length, really"])
def test_a_record_that_a_torn_line_runs_into_is_read_and_the_torn_one_is_rejected(first: str, cut: int) -> None:
    torn = DATE + b" INFO org.apache.x.Y: " + first.encode()
    whole = DATE.replace(b"59,", b"58,") + b" INFO [main] org.apache.x.Z: app_1 State change from NEW to OLD"
    hits, sink = read(torn[:cut] + whole + b"\n" + torn + b"\n")
    wanted = [hit for hit in hits if hit.kind == 0]
    assert [(hit.text, hit.millis % 60_000) for hit in wanted] == [("app_1 State change from NEW to OLD", 58_329)]
    assert sink.rows_in == 3
    seen = cut > len(DATE) + 22 + len("USER=") and first.startswith("USER")
    assert sink.rejects == ([(1, GLUED)] if seen else [])
    assert [hit.text for hit in hits if hit.kind == 1] == ([first] if first.startswith("USER") else [])


@pytest.mark.parametrize("before", [" ", '"', "(", "["])
def test_a_record_that_a_message_quotes_is_no_record(before: str) -> None:
    quoted = DATE.decode() + " WARN x.Y: what it said"
    text = f"{DATE.decode()} INFO org.apache.x.Y: USER=eve said {before}{quoted}\n"
    hits, sink = read(text.encode())
    assert (len(hits), sink.rows_in, sink.rejects) == (1, 1, [])


CONSOLE = b"18/08/22 10:11:12"


@pytest.mark.parametrize("cut", [3, 18, 25, 38, 45, 56, 60, 69, 75, 99])
def test_a_console_record_that_a_torn_line_runs_into_is_read_and_the_torn_one_is_rejected(cut: int) -> None:
    torn = CONSOLE + b" INFO org.apache.x.Y: USER=eve OPERATION=Submit APPID=app_20"
    for level in (b"INFO", b"WARN", b"ERROR", b"DEBUG"):
        whole = b"18/08/22 10:11:13 " + level + b" org.apache.x.Z: app_1 State change from NEW to OLD"
        hits, sink = read(torn[:cut] + whole + b"\n" + torn + b"\n")
        assert [(hit.text, hit.millis % 60_000) for hit in hits if hit.kind == 0] == [
            ("app_1 State change from NEW to OLD", 13_000)
        ]
        seen = cut > len(CONSOLE) + 21 + len("USER=")
        reason = NO_DATE if cut < len(CONSOLE) else GLUED
        assert sink.rejects == ([(1, reason)] if seen or reason == NO_DATE else [])
        assert [hit.text for hit in hits if hit.kind == 1] == [torn.split(b": ")[1].decode()]


@pytest.mark.parametrize(
    "quoted",
    [
        *(f"{before}18/08/22 10:11:12 WARN x.Y: what it said" for before in (" ", '"', "(", "[", " 20")),
        "=18/08/22 10:11:12 INFO x.Y: USER=bob",
        ":18/08/22 10:11:12 UTC USER=bob",
        " at 2018/08/22 10:11:12 PDT, path /18/08/22 10:11:12 INFORMATION",
    ],
)
def test_a_console_stamp_that_a_message_quotes_is_no_record(quoted: str) -> None:
    hits, sink = read(f"{CONSOLE.decode()} INFO org.apache.x.Y: USER=eve said {quoted}\n".encode())
    assert (len(hits), sink.rows_in, sink.rejects) == (1, 1, [])


def test_the_lines_after_a_record_end_before_the_next_dated_one() -> None:
    for stamp in (b"2018-08-22 10:11:12,123", b"2018-08-22T10:11:12,123", CONSOLE):
        assert module._more(b"x\n at y\n" + stamp + b" INFO a.B: z\n", 1) == "\n at y"
