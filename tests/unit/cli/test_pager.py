"""Long output goes through the user's pager, and straight to the terminal where there is none."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, TextIO

import pytest

from gpuctl.cli.output import page

if TYPE_CHECKING:
    from pathlib import Path


def show(file: TextIO, *, color: bool | None = None) -> None:
    file.write("line\n" * 100_000)


def paged(monkeypatch: pytest.MonkeyPatch, pager: str, term: str = "xterm") -> str:
    """What reaches standard output itself."""
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("PAGER", pager)
    page(show)
    return out.getvalue()


def test_a_pager_gets_all_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not paged(monkeypatch, f"tee '{tmp_path}/a b.txt'")
    assert (tmp_path / "a b.txt").read_text() == "line\n" * 100_000


def test_a_reader_who_leaves_early_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not paged(monkeypatch, "true")


@pytest.mark.parametrize(("pager", "term"), [("no-such-pager", "xterm"), ("cat", "dumb")])
def test_without_a_pager_it_is_printed(monkeypatch: pytest.MonkeyPatch, pager: str, term: str) -> None:
    assert paged(monkeypatch, pager, term) == "line\n" * 100_000
