"""What a training job reads and writes: shards of data, checkpoints, and the other worker's gradients."""

from __future__ import annotations

import http.client
import json
import queue
import random
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, np.dtype[Any]]

AHEAD = 1
"""Shards that wait ready; one more is on its way. Deeper, and traffic would no longer follow the computing."""


class Storage:
    """One keep-alive connection to the file server; paths are below its root."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=60)

    def get(self, path: str) -> bytearray:
        """Return a file's bytes.

        Raises:
            RuntimeError: the server does not have it.
        """
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"GET {path}: {answer.status}")
        buffer = bytearray(int(answer.headers["Content-Length"]))
        view, at = memoryview(buffer), 0
        while at < len(buffer):
            got = answer.readinto(view[at:])
            if not got:
                raise RuntimeError(f"GET {path}: {at} of {len(buffer)} bytes")
            at += got
        answer.read()
        return buffer

    def put(self, path: str, body: bytes | memoryview) -> None:
        """Write a file; the server replaces an older one once all bytes are there."""
        self._connection.request("PUT", path, body=body)
        answer = self._connection.getresponse()
        answer.read()
        if answer.status not in {201, 204}:
            raise RuntimeError(f"PUT {path}: {answer.status}")


class Loader:
    """Reads shards ahead of the computing, in an order of its own every epoch.

    Args:
        storage: its connection is used by this loader's thread only.
        folder: of the shards on the server.
        row: what one sample is: bytes of the input, bytes of the label.
        cached: keep what was read, and read it no second time.
    """

    def __init__(self, storage: Storage, folder: str, row: tuple[int, int], *, cached: bool) -> None:
        self._storage, self._folder, self._row, self._cached = storage, folder, row, cached
        self._cached: dict[str, bytearray] = {}

    def read(self, name: str) -> bytearray:
        """Return a shard, from the local copy where there is one."""
        if name in self._cached:
            return self._cached[name]
        shard = self._storage.get(f"{self._folder}/{name}")
        if self._cached:
            self._cached[name] = shard
        return shard

    def epoch(self, names: list[str]) -> Iterator[bytearray]:
        """Yield the shards in the order given, read ahead by a thread."""
        ready: queue.Queue[bytearray | None] = queue.Queue(AHEAD)

        def fetch() -> None:
            try:
                for name in names:
                    ready.put(self.read(name))
            finally:
                ready.put(None)

        thread = threading.Thread(target=fetch, daemon=True)
        thread.start()
        count = 0
        while (shard := ready.get()) is not None:
            count += 1
            yield shard
        thread.join()
        if count != len(names):
            raise RuntimeError(f"read {count} of {len(names)} shards")

    def batches(self, names: list[str], batch: int) -> Iterator[tuple[memoryview, memoryview]]:
        """Yield inputs and labels of ``batch`` samples as bytes; what is left of a shard goes before the next one."""
        x_bytes, y_bytes = self._row
        left_x, left_y = bytearray(), bytearray()
        for shard in self.epoch(names):
            samples = len(shard) // (x_bytes + y_bytes)
            view = memoryview(shard)
            left_x += view[: samples * x_bytes]
            left_y += view[samples * x_bytes :]
            x, y, at = bytes(left_x), bytes(left_y), 0
            total = len(x) // x_bytes
            while at + batch <= total:
                yield (
                    memoryview(x)[at * x_bytes : (at + batch) * x_bytes],
                    memoryview(y)[at * y_bytes : (at + batch) * y_bytes],
                )
                at += batch
            left_x, left_y = bytearray(x[at * x_bytes :]), bytearray(y[at * y_bytes :])


def shard_names(shards: int, epoch: int, rank: int, workers: int) -> list[str]:
    """The shards that a worker reads in an epoch, in their order; together the workers read each once."""
    names = [f"train-{number:04d}.bin" for number in range(shards)]
    random.Random(epoch).shuffle(names)
    return names[rank::workers]


def pack(meta: dict[str, Any], arrays: list[Array], text: str = "") -> bytes:
    """A checkpoint: a line of JSON, the arrays' bytes, a text."""
    head = {**meta, "arrays": [[str(array.dtype), len(array)] for array in arrays]}
    return b"".join([json.dumps(head).encode(), b"\n", *(array.tobytes() for array in arrays), text.encode()])


def unpack(data: bytearray) -> tuple[dict[str, Any], list[Array], str]:
    """What :func:`pack` was given."""
    end = data.index(b"\n") + 1
    meta, arrays = json.loads(data[:end]), []
    for kind, length in meta.pop("arrays"):
        array = np.frombuffer(data, dtype=kind, count=length, offset=end)
        end += array.nbytes
        arrays.append(array)
    return meta, arrays, bytes(data[end:]).decode()


class Peer:
    """The other worker of a job of two, over TCP on the node's own loopback. A job of one has none."""

    def __init__(self, rank: int, port: int) -> None:
        if rank == 0:
            with socket.create_server(("127.0.0.1", port)) as server:
                self._socket, _ = server.accept()
        else:
            self._socket = _connect(port)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def swap(self, mine: bytes | memoryview) -> bytearray:
        """Send bytes and receive as the other one does so; both wait for each other."""
        view = memoryview(mine).cast("B")
        sender = threading.Thread(target=self._send, args=(view,))
        sender.start()
        length = struct.unpack("<Q", self._receive(8))[0]
        theirs = self._receive(length)
        sender.join()
        return theirs

    def mean(self, mine: Array) -> Array:
        """The mean of both workers' vectors."""
        theirs: Array = np.frombuffer(self.swap(mine.data), dtype=mine.dtype)
        mean: Array = (mine + theirs) * np.asarray(0.5, mine.dtype)
        return mean

    def _send(self, view: memoryview) -> None:
        self._socket.sendall(struct.pack("<Q", len(view)))
        self._socket.sendall(view)

    def _receive(self, length: int) -> bytearray:
        buffer, at = bytearray(length), 0
        view = memoryview(buffer)
        while at < length:
            got = self._socket.recv_into(view[at:])
            if not got:
                raise RuntimeError("the other worker is gone")
            at += got
        return buffer


def _connect(port: int) -> socket.socket:
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
