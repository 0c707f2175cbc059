"""Whatever a log holds: the parser of training progress answers, with sane values, in time that grows with the line."""

from __future__ import annotations

import math
import time
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.joblogs.evidence import Step
from gpuctl.joblogs.progress import LINE_LIMIT, Parser
from gpuctl.joblogs.progress_text import stamp

WORDS = (
    *("epoch", "Epoch", "loss", "val_loss", "train", "Test: ", "step", "iter", "it/s", "s/it", "it [", "nan", "inf"),
    *("[", "]", "(", ")", "/", ":", "=", "|", "%|", "<", "00:03", "2024-01-01 10:00:00", "{", "}", '"', "'", ",", " "),
    *(
        "\t",
        "\x1b[1m",
        "\b",
        "━",
        "[=>.]",
        " - 3s",
        "ETA",
        "1",
        "45",
        "100",
        "1e400",
        "²",
        "٣",
        "9" * 20,
        ".",
        "-",
        "e",
    ),
    *(" of ", " Testing net", "Iteration ", "Finished Epoch[ 1 of 2]: ce = ", "Unknown", "\\t", "avg, ", "\x00", "é"),
)
LINES = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=3)), max_size=40).map("".join)


def check(steps: list[Step]) -> None:
    for step in steps:
        assert step.line_no == 7
        assert (step.metric is None) == (step.value is None)
        assert step.metric is None or 0 < len(step.metric) < 200
        for whole in (step.step, step.steps):
            assert whole is None or 0 <= abs(whole) < 2**63
        for number in (step.epoch, step.epochs, step.elapsed_s, step.ts):
            assert number is None or math.isfinite(number)


@given(st.lists(LINES, max_size=8))
def test_any_lines(lines: list[str]) -> None:
    parser = Parser()
    for line in lines:
        check(parser.read(line, 7))


@given(st.text())
def test_any_text(text: str) -> None:
    check(Parser().read(text, 7))
    stamp(text, UTC)


@given(
    st.integers(0, 10**6),
    st.integers(1, 10**6),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15),
)
def test_what_was_printed_is_read(epoch: int, step: int, loss: float) -> None:
    for line in (
        f"epoch {epoch} step {step} loss {loss!r}",
        f"2024-01-01 10:00:00 INFO Epoch: [{epoch}], Step: {step}, loss: {loss!r}, lr: 0.1",
        f'{{"loss": {loss!r}, "step": {step}, "lr": 0.1, "epoch": {epoch}}}',
        f"[rank1]: epoch={epoch} lr=0.1 loss={loss!r} step={step} acc=0.5 time=0.2",
    ):
        [found] = Parser().read(line, 7)
        assert (found.epoch, found.step, found.value) == (epoch, step, loss), line


@pytest.mark.parametrize(
    "piece", [*WORDS, "epoch 1 ", "loss: 1 ", "a.b/c-", "1,234", "a1 ", "x ", "1/2 [", "12:00:00", "val "]
)
def test_the_time_for_a_line_is_bounded(piece: str) -> None:
    """A hundred times what an ordinary line takes; nested repeats would take minutes."""
    line = (piece * LINE_LIMIT)[: LINE_LIMIT * 4]
    for text in (line, f"loss 1 {line}", f"Epoch 1: 45%|{line}", f"1/2 [={line}", f"Epoch[1 of 2]: {line} = "):
        begin = time.process_time()
        check(Parser().read(text, 7))
        assert time.process_time() - begin < 0.2, text[:60]
