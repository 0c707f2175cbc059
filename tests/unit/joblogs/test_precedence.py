"""What counts where several signatures are found: in one line, in one traceback, in one log."""

from __future__ import annotations

import io

import pytest

from gpuctl.core.states import State
from gpuctl.joblogs.classify import classify
from gpuctl.joblogs.evidence import Facts
from tests.signatures import scanner

FAILED = Facts(state=State.FAILED, exit_code=1)


def reason(*lines: str) -> str | None:
    found = scanner().scan(io.BytesIO("\n".join((*lines, "")).encode()))
    return classify([*found.matches, *found.telling], scanner().table, FAILED).reason


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("RuntimeError: rank 2 did not reach the barrier within 60 s", "collective_timeout"),
        ("RuntimeError: something odd", "program_error"),
        ("AssertionError: batch size is not divisible by the number of ranks", "invalid_config"),
        ("lightgbm.basic.LightGBMError: Could not open data file x.csv", "incorrect_inputs"),
        ("StageFailed: stage 'score' failed with code 17", "step_failed"),
        ("jsonschema.exceptions.ValidationError: 'ten' is not of type 'integer'", "wrong_arguments"),
    ],
)
def test_words_precede_the_class_of_an_exception(line: str, expected: str) -> None:
    assert reason("step 1 of 9", line) == expected


def test_words_that_need_a_label_are_ordinary_output_without_one() -> None:
    assert scanner().find("the gradients of this layer are nan") == set()
    assert "says-nan" in scanner().find("RuntimeError: the gradients of this layer are nan")


def test_a_path_that_is_not_there_while_saving_is_the_checkpoints() -> None:
    frames = (
        "Traceback (most recent call last):",
        '  File "/tmp/jobs/1/train.py", line 31, in {}',
        '    with open(path, "wb") as out:',
        "FileNotFoundError: [Errno 2] No such file or directory: 'runs/a/ckpt.pt'",
    )
    assert reason(*(line.format("save_checkpoint") for line in frames)) == "checkpoint_error"
    assert reason(*(line.format("main") for line in frames)) == "incorrect_inputs"


def test_an_error_after_which_the_shell_went_on_is_not_why_it_ended() -> None:
    assert (
        reason(
            "cat: local_overrides.env: No such file or directory",
            "no local overrides (fine)",
            "curl: (28) Operation timed out after 3003 milliseconds with 0 bytes received",
        )
        == "network_error"
    )
