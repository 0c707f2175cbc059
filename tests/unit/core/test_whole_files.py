"""Files that are read whole: no endless, sparse, silent or unreadable one fills the memory or holds a reader up."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpuctl.core import file_io
from gpuctl.core.errors import InputError
from gpuctl.core.file_io import parse_toml, read_head, read_whole

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_io, "IDLE_S", 0.3)
    monkeypatch.setattr(file_io, "PIPE_S", 0.8)


def writing(path: Path, write: Callable[[int], object]) -> threading.Thread:
    """Write into a pipe from a thread, as another program does."""

    def run() -> None:
        number = os.open(path, os.O_WRONLY)
        try:
            write(number)
        except OSError:
            pass  # the reader has had enough
        finally:
            os.close(number)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_file_is_read_whole_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 5000)
    assert read_whole(path, most=5000) == b"x" * 5000
    assert read_head(path, 10) == b"x" * 10
    with pytest.raises(
        InputError,
        match=r"file: is larger than 4,999 bytes, the maximum for such a file",
    ):
        read_whole(path, most=4999)


def test_endless_and_sparse_files_are_refused_before_they_are_read(tmp_path: Path) -> None:
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(1 << 40)
    for path in (sparse, Path("/dev/zero")):
        with pytest.raises(InputError, match="larger than 1 MiB"):
            read_whole(path, most=1 << 20)
    assert len(read_whole(Path("/dev/zero"), most=1 << 30, begins=b"{")) <= 1 << 20, "its beginning is enough"
    assert read_whole(Path("/dev/null")) == b""
    assert read_head(Path("/dev/zero"), 4) == b""


def test_a_pipe_is_read_as_a_file_is(pipe: Path) -> None:
    def slowly(number: int) -> None:
        for _ in range(4):
            os.write(number, b"part ")
            time.sleep(0.05)

    thread = writing(pipe, slowly)
    assert read_whole(pipe) == b"part " * 4
    thread.join()
    thread = writing(pipe, lambda number: os.write(number, b""))
    assert read_whole(pipe) == b""
    thread.join()


@pytest.mark.parametrize("writes", ["nobody", "nothing", "a byte now and then", "without end"])
def test_a_pipe_never_holds_a_reader_up(pipe: Path, writes: str) -> None:
    def without_end(number: int) -> None:
        while True:
            os.write(number, bytes(65_536))

    def drip(number: int) -> None:
        for _ in range(100):
            os.write(number, b"x")
            time.sleep(0.02)

    how = {"nothing": lambda _: time.sleep(1.0), "a byte now and then": drip, "without end": without_end}
    thread = writing(pipe, how[writes]) if writes in how else None
    began = time.monotonic()
    with pytest.raises(InputError, match=r"did not end|larger than 1 MiB"):
        read_whole(pipe, most=1 << 20)
    assert time.monotonic() - began < 2
    assert read_head(pipe, 4) == b""
    if thread:
        thread.join()


def test_it_reports_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to("/dev/null")
    for path, why in ((tmp_path, "Is a directory"), (tmp_path / "loop", "Too many levels"), (Path("a\0b"), "null")):
        with pytest.raises(InputError, match=f"cannot be read: .*{why}"):
            read_whole(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_whole(tmp_path / "link", follow=False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a = " + b"{x=" * 100_000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "is not valid TOML: Exceeds the limit"),
        (b"a = 9999-99-99", "is not valid TOML"),
        (b"\xff", "is not valid TOML"),
        (b"a", "is not valid TOML"),
    ],
    ids=range(6),
)
def test_toml_that_is_none(text: bytes, found: str) -> None:
    with pytest.raises(InputError, match=f"^f.toml: .*{found}") as raised:
        parse_toml(text, "f.toml", "expected: something")
    assert raised.value.hint == "expected: something"
