"""How the program ends: what a user is told of a signal, whatever a library made of it."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from gpuctl.cli import main
from gpuctl.core.errors import ExitCode, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def pressed() -> Iterator[list[int]]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield main._watch()
    signal.signal(signal.SIGINT, before)


def _as(error: BaseException, *, after_ctrl_c: bool) -> object:
    def app(*_args: object, **_options: object) -> None:
        if after_ctrl_c:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                raise error from None
        raise error

    return app


@pytest.mark.parametrize(
    "error", [SystemError("returned a result with an exception set"), StoreError("x"), ValueError()]
)
def test_what_a_library_makes_of_ctrl_c_is_told_as_ctrl_c(
    error: Exception, pressed: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "app", _as(error, after_ctrl_c=True))
    assert main._run([], debug=False, pressed=pressed) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == "gpuctl: interrupted\n"


def test_the_same_without_ctrl_c_is_a_bug(
    pressed: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "app", _as(SystemError("x"), after_ctrl_c=False))
    assert main._run([], debug=False, pressed=pressed) == ExitCode.BUG
    assert "internal error: SystemError: x" in capsys.readouterr().err
