"""Logs in other encodings than UTF-8, and logs with holes."""

from __future__ import annotations

import codecs
import io

import pytest

from gpuctl.joblogs import scan
from gpuctl.joblogs.encodings import chunks, encoding_of
from tests.signatures import scanner

TEXT = "epoch 1 loss 0.5 ü\nTraceback (most recent call last):\nModuleNotFoundError: No module named 'flash_attn'\n"
MARKS = {
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "unmarked"])
@pytest.mark.parametrize("encoding", MARKS)
def test_a_log_in_utf_16_or_32_is_read_however_it_is_cut(
    encoding: str, marked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (MARKS[encoding] if marked else b"") + TEXT.encode(encoding)
    for size in (1 << 20, 37):
        monkeypatch.setattr(scan, "CHUNK", size)
        found = scanner().scan(io.BytesIO(data))
        assert [match.text for match in found.matches][-1] == TEXT.splitlines()[-1]
        assert (found.size, found.lines, found.steps) == (len(data), 3, 1)


@pytest.mark.parametrize("text", ["", "a", "plain words\n" * 9, "\0" * 4096, "ü\n" * 40, "\ufeffwords in utf-8\n" * 3])
def test_other_logs_are_left_as_they_are(text: str) -> None:
    assert encoding_of(text.encode())[0] is None


def test_what_is_no_text_in_its_encoding_is_replaced() -> None:
    data = codecs.BOM_UTF16_LE + b"\x00\xdc" + "ok\n".encode("utf-16-le") + b"x"
    assert b"".join(text for text, _ in chunks(io.BytesIO(data), 7)).decode() == "\ufffdok\n\ufffd"


def test_after_a_hole_the_line_itself_is_the_evidence() -> None:
    """A log that is cut while a program keeps writing begins with NULs."""
    line = "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"
    for hole in (3, 5000, (1 << 20) + 5):
        found = scanner().scan(io.BytesIO(b"\0" * hole + line.encode() + b"\n"))
        assert {match.text for match in found.matches} == {line}
    inside = scanner().scan(io.BytesIO(b"rank 3" + b"\0" * 700 + line.encode() + b"\n"))
    assert {match.text for match in inside.matches} == {f"rank 3 {line}"}
