"""Asking a ResourceManager over REST: here one that we play ourselves."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, ClassVar

import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.yarn.live import WHAT, fetch
from tests.unit.ingest.yarn import cluster as y
from tests.unit.ingest.yarn.test_dumps import capacity_scheduler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANSWERS = {
    "/ws/v1/cluster/info": b'{"clusterInfo":{}}',
    "/ws/v1/cluster/apps": y.rest_apps(y.everything()),
    "/ws/v1/cluster/nodes": b'{"nodes":{"node":[{"nodeHostName":"n1","state":"RUNNING"}]}}',
    "/ws/v1/cluster/scheduler": capacity_scheduler(),
    "/ws/v1/cluster/metrics": b'{"clusterMetrics":{}}',
}
Answer = tuple[int, dict[str, str], bytes]


class Manager(BaseHTTPRequestHandler):
    """Answers as told."""

    special: ClassVar[dict[str, Answer]] = {}
    requests: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.requests.append(self.path)
        path = self.path.removeprefix("/proxied")
        status, headers, body = self.special.get(path, (200, {}, ANSWERS.get(path, b"")))
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def manager() -> Iterator[str]:
    Manager.special.clear()
    Manager.requests.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Manager)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def now() -> datetime:
    return datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize("path", ["", "/", "/proxied"])
def test_answers_become_files_that_can_be_ingested(manager: str, tmp_path: Path, path: str) -> None:
    files = fetch(manager + path, tmp_path / "answers", now=now)
    assert [file.name for file in files] == [f"yarn-{what}-20240102T030405Z.json" for what in WHAT]
    assert [file.read_bytes() for file in files] == list(ANSWERS.values())
    assert not ingest([tmp_path / "answers"], tmp_path / "s.duckdb", cluster="c").failed
    assert y.frame(tmp_path / "s.duckdb", "SELECT * FROM jobs").height == 4
    assert y.row(tmp_path / "s.duckdb", "SELECT quota_gpus AS q FROM queues WHERE queue = 'root.prod.gpu'")["q"] == 12


def test_redirections_stay_on_the_host(manager: str, tmp_path: Path) -> None:
    Manager.special["/ws/v1/cluster/info"] = (307, {"Location": "/there"}, b"")
    Manager.special["/there"] = (200, {}, b'{"moved":1}')
    assert fetch(manager, tmp_path)[0].read_bytes() == b'{"moved":1}'


@pytest.mark.parametrize(
    "target", ["http://localhost:1/x", "http://127.0.0.1:1/x", "https://127.0.0.1/x", "file:///etc/passwd", "//evil/x"]
)
def test_redirections_to_elsewhere_are_refused(manager: str, tmp_path: Path, target: str) -> None:
    Manager.special["/ws/v1/cluster/info"] = (302, {"Location": target}, b"")
    with pytest.raises(InputError, match="HTTP status 302"):
        fetch(manager, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, {}, b"<html>"), "not a JSON object"),
        ((200, {}, b""), "not a JSON object"),
        ((200, {"Content-Length": "100"}, b"{}"), "cut off|cannot be fetched"),
        ((401, {}, b""), "HTTP status 401"),
        ((500, {}, json.dumps({"RemoteException": {"message": "on fire"}}).encode()), "HTTP status 500: on fire"),
        ((200, {}, b"{" + b" " * 5000), "more than 4096 bytes"),
    ],
)
def test_answers_that_are_none(manager: str, tmp_path: Path, answer: Answer, message: str) -> None:
    Manager.special["/ws/v1/cluster/apps"] = answer
    with pytest.raises(InputError, match=message):
        fetch(manager, tmp_path, limit=4096, timeout_s=5)
    assert [file.name.split("-")[1] for file in tmp_path.iterdir()] == ["info"]


@pytest.mark.parametrize("url", ["http://a..b", f"http://{'a' * 70}.b", "http://127.0.0.1:0"])
def test_hosts_that_cannot_be(url: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be fetched"):
        fetch(url, tmp_path, timeout_s=5)


@pytest.mark.parametrize(
    "answer", [b"", b"what?\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200]
)
def test_an_answer_that_is_not_http_is_reported(answer: bytes, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def once() -> None:
            there, _ = server.accept()
            with there:
                there.recv(4096)
                there.sendall(answer)

        speaker = threading.Thread(target=once, daemon=True)
        speaker.start()
        with pytest.raises(InputError, match="cannot be fetched"):
            fetch(f"http://127.0.0.1:{server.getsockname()[1]}", tmp_path, timeout_s=5)
        speaker.join(5)


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be fetched"):
        fetch("http://127.0.0.1:1", tmp_path, timeout_s=5)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "rm:8088",
        "file:///etc/passwd",
        "ftp://rm/",
        "http://",
        "http://rm:x",
        "http://u:p@rm",
        "http://rm/?a=b",
        "http://r m",
        "http://rm:99999",
        "http://r\nm",
        "http://[::1",
        "http://r\u00fc",
        "http://rm/\u8def",
    ],
)
def test_addresses_that_are_none(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        fetch(url, tmp_path)


@pytest.fixture
def dripping() -> Iterator[tuple[str, dict[str, bytes]]]:
    """A server that says what it is told at once, and then one byte every 20 ms, for ever."""
    says: dict[str, bytes] = {}
    server = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def drip(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.recv(65_536)
            client.sendall(says["at once"])
            while not over.wait(0.02):
                client.sendall(says["then"])

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(server.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}", says
    over.set()
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


@pytest.mark.parametrize(
    ("at_once", "then", "within"),
    [
        (b"", b"H", "no whole answer within"),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"[:1], "no whole answer within"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{"a', b" ", "no whole answer within"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n", "no whole answer within"),
        (b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 1000000\r\n\r\n", b" ", "no whole answer|HTTP"),
        (b"HTTP/1.1 500 No\r\nContent-Length: 1000000\r\n\r\n", b" ", "HTTP status 500"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{", b"", "nothing came for|no whole answer"),
    ],
)
def test_a_server_that_drips_is_given_up_on(
    dripping: tuple[str, dict[str, bytes]], tmp_path: Path, at_once: bytes, then: bytes, within: str
) -> None:
    url, says = dripping
    says |= {"at once": at_once, "then": then}
    began = time.monotonic()
    with pytest.raises(InputError, match=within) as raised:
        fetch(url, tmp_path, timeout_s=0.6)
    assert time.monotonic() - began < 5
    assert raised.value.path == f"{url}/ws/v1/cluster/info"
    assert list(tmp_path.iterdir()) == []


def test_the_time_is_that_of_each_answer_not_of_all(
    manager: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Manager.do_GET

    def slowly(self: Manager) -> None:
        time.sleep(0.3)
        answer(self)

    monkeypatch.setattr(Manager, "do_GET", slowly)
    assert len(fetch(manager, tmp_path, timeout_s=1.2)) == len(WHAT)
