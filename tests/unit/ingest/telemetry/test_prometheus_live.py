"""Asking a Prometheus for samples of GPUs: here one that we play ourselves; tests/integration has a real one."""

from __future__ import annotations

import base64
import json
import threading
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.telemetry import live
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = date(2026, 10, 31)
MIDNIGHT = int(datetime(2026, 10, 31, tzinfo=UTC).timestamp())
STEP = 1800
UTIL, POWER, XID = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_XID_ERRORS"


class Server(BaseHTTPRequestHandler):
    """Has a sample of each metric every half hour, its value the half hours since 1970, modulo 101.

    The gauge of the last XID is there if `xid_from` is set: 0 before that second, then 79.
    """

    asked: ClassVar[list[tuple[str, float, float]]] = []
    headers_seen: ClassVar[list[str | None]] = []
    most_s: ClassVar[float] = 1e9
    special: ClassVar[dict[str, tuple[int, bytes]]] = {}
    xid_from: ClassVar[float | None] = None

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.headers_seen.append(self.headers["Authorization"])
        if parts.path in self.special:
            self._say(*self.special[parts.path])
        elif parts.path == "/api/v1/label/__name__/values":
            self._say(
                200,
                json.dumps(
                    {"status": "success", "data": ["up", UTIL, POWER, *([XID] if self.xid_from else [])]}
                ).encode(),
            )
        else:
            metric, _, rest = asked["query"].partition("{")
            end = float(asked["time"])
            if "[" not in rest:
                sample = [end, "79" if self.xid_from and end >= self.xid_from else "0"]
                one = {"metric": {"__name__": metric, "gpu": "0", "Hostname": "n1", "UUID": "GPU-a"}, "value": sample}
                data = {"resultType": "vector", "result": [one]}
                self._say(200, json.dumps({"status": "success", "data": data}).encode())
                return
            span = float(rest.partition("[")[2].removesuffix("ms]")) / 1000
            self.asked.append((metric, end - span, end))
            if span > self.most_s:
                self._say(422, b'{"status":"error","errorType":"execution","error":"too many samples"}')
                return
            first = -(-(end - span) // STEP) * STEP
            times = range(int(first), int(end) + 1, STEP)
            one = {"metric": {"__name__": metric, "gpu": "0", "Hostname": "n1", "UUID": "GPU-a"},
                   "values": [[t, self._value(metric, t)] for t in times]}  # fmt: skip
            result = [one] if times and metric in {UTIL, XID} else []
            self._say(
                200, json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
            )

    def _value(self, metric: str, t: int) -> str:
        return str(t // STEP % 101) if metric == UTIL else "79" if t >= (self.xid_from or 0) else "0"

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[live.Prometheus]:
    Server.asked.clear()
    Server.headers_seen.clear()
    Server.special.clear()
    Server.most_s, Server.xid_from = 1e9, None
    for name in (live.TOKEN, live.USER, live.PASSWORD):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)
    playing = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=playing.serve_forever, daemon=True)
    thread.start()
    yield live.Prometheus(f"http://127.0.0.1:{playing.server_address[1]}", timeout_s=5)
    playing.shutdown()
    playing.server_close()
    thread.join()


def readings(db: Path) -> list[tuple[int, float]]:
    with Store(db) as store:
        return store.execute("SELECT epoch(ts)::BIGINT, util FROM gpu_readings ORDER BY ts").fetchall()


@pytest.mark.parametrize("most_s", [1e9, 4000.0])
def test_each_sample_of_a_day_is_fetched_once(server: live.Prometheus, tmp_path: Path, most_s: float) -> None:
    Server.most_s = most_s
    found = live.fetch(tmp_path / "a", server, DAY, DAY)
    assert [file.name for file in found.files] == [f"{UTIL}-2026-10-31.json.zst"]
    assert not ingest(found.files, tmp_path / "s.duckdb", cluster="c").failed
    assert readings(tmp_path / "s.duckdb") == [
        (t, float(t // STEP % 101)) for t in range(MIDNIGHT, MIDNIGHT + 86400, STEP)
    ]
    answered = sorted(ask for ask in Server.asked if ask[0] == UTIL and ask[2] - ask[1] <= most_s)
    assert all(two[1] - one[2] == pytest.approx(0.001, abs=1e-4) for one, two in pairwise(answered))


def test_a_fault_at_midnight_is_of_the_day_that_begins(server: live.Prometheus, tmp_path: Path) -> None:
    Server.xid_from = MIDNIGHT + 86400
    found = live.fetch(tmp_path / "a", server, DAY, date(2026, 11, 2))
    ingest(found.files, tmp_path / "s.duckdb", cluster="c")
    with Store(tmp_path / "s.duckdb") as store:
        events = store.execute("SELECT epoch(ts)::BIGINT, machine, code FROM gpu_events").fetchall()
    assert events == [(MIDNIGHT + 86400, "n1", 79)]


def test_a_run_continues_where_another_stopped(server: live.Prometheus, tmp_path: Path) -> None:
    until = date(2026, 11, 2)
    Server.special["/api/v1/query"] = (401, b"")
    with pytest.raises(InputError, match="HTTP status 401") as stop:
        live.fetch(tmp_path / "a", server, DAY, until)
    assert live.TOKEN in str(stop.value.hint)
    assert not list((tmp_path / "a").glob("*.json*"))
    Server.special.clear()
    live.fetch(tmp_path / "a", server, DAY, DAY)
    Server.asked.clear()
    found = live.fetch(tmp_path / "a", server, DAY, until)
    assert min(ask[1] for ask in Server.asked) >= MIDNIGHT + 86400
    assert len(found.files) == 3
    ingest(found.files, tmp_path / "s.duckdb", cluster="c")
    assert len(readings(tmp_path / "s.duckdb")) == 3 * 48


def test_the_day_at_hand_is_fetched_again_in_place(
    server: live.Prometheus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hour, rows in ((6, 12), (12, 24)):
        monkeypatch.setattr(live.time, "time", lambda hour=hour: MIDNIGHT + hour * 3600)
        found = live.fetch(tmp_path / "a", server, DAY)
        ingest(found.files, tmp_path / "s.duckdb", cluster="c")
        assert len(readings(tmp_path / "s.duckdb")) == rows


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, b"<html>"), "not an answer of Prometheus's query API"),
        ((200, b'{"status":"success","data":{"resul'), "not an answer of Prometheus's query API"),
        ((400, b'{"status":"error","error":"no such function"}'), "HTTP status 400: no such function"),
        ((503, b"busy"), "HTTP status 503"),
        ((302, b""), "HTTP status 302"),
    ],
)
def test_answers_that_are_none(
    server: live.Prometheus, tmp_path: Path, answer: tuple[int, bytes], message: str
) -> None:
    Server.special["/api/v1/query"] = answer
    with pytest.raises(InputError, match=message):
        live.fetch(tmp_path / "a", server, DAY, DAY)
    assert [file.name for file in (tmp_path / "a").iterdir()] == [".match"]


def test_other_series_go_into_another_folder(server: live.Prometheus, tmp_path: Path) -> None:
    live.fetch(tmp_path / "a", server, DAY, DAY)
    with pytest.raises(UsageError, match="was fetched with --match ''"):
        live.fetch(tmp_path / "a", live.Prometheus(server.url, 'cluster="b"'), DAY, DAY)


@pytest.mark.parametrize("text", ["a", 'a="', 'a="b"} or up{x="y"', "a='b'", 'a="b" c="d"'])
def test_matchers_are_matchers_alone(text: str) -> None:
    with pytest.raises(UsageError, match="not matchers of labels"):
        live.matchers(text)
    assert live.matchers('cluster="a", host=~"n.*",') == 'cluster="a", host=~"n.*"'


def test_credentials_come_from_variables_or_files(server: live.Prometheus, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc.def\n")
    assert live.credentials({}) == {}
    assert live.credentials({f"{live.TOKEN}_FILE": str(tmp_path / "token")}) == {"Authorization": "Bearer abc.def"}
    basic = live.credentials({live.USER: "ann", live.PASSWORD: "s:cret"})["Authorization"]
    assert base64.b64decode(basic.removeprefix("Basic ")) == b"ann:s:cret"
    for wrong in (
        {live.TOKEN: "a", live.USER: "b", live.PASSWORD: "c"},
        {live.USER: "ann"},
        {live.TOKEN: "a\r\nX: y"},
        {live.TOKEN: "a", f"{live.TOKEN}_FILE": str(tmp_path / "token")},
    ):
        with pytest.raises(UsageError):
            live.credentials(wrong)
    with pytest.raises(InputError):
        live.credentials({f"{live.TOKEN}_FILE": str(tmp_path / "absent")})
    del server


def test_the_server_sees_the_token(server: live.Prometheus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(live.TOKEN, "abc")
    live.fetch(tmp_path / "a", server, DAY, DAY)
    assert set(Server.headers_seen) == {"Bearer abc"}


def test_addresses_hold_no_password() -> None:
    with pytest.raises(UsageError, match="password in it"):
        live.address("http://ann:secret@prometheus:9090")
