"""What the learned reader makes of messages of which the tables know only the class."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from gpuctl.core.states import State
from gpuctl.joblogs import learned
from gpuctl.joblogs.classify import classify
from gpuctl.joblogs.evidence import Facts, Verdict
from gpuctl.joblogs.scan import Scanner
from gpuctl.joblogs.table import LEVELS, READ, load, reading_ids
from tests.signatures import scanner, table

FAILED = Facts(state=State.FAILED, exit_code=1)
HEAD = 'Traceback (most recent call last):\n  File "/jobs/run.py", line 3, in <module>\n    go()\n'


def verdict(text: str, facts: Facts | None = FAILED) -> Verdict:
    scan = scanner().scan(io.BytesIO(text.encode()))
    return classify([*scan.matches, *scan.telling], table(), facts)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("AssertionError: the layer is built for 4 channels, the batch has 3 channels", "shape_error"),
        ("RuntimeError: world size 12 is not divisible by tensor parallel size 8", "invalid_config"),
        ("RuntimeError: every licence of the solver is in use", "licence_error"),
        ("RuntimeError: the tracker says that the token has expired", "authentication_failed"),
        ("RuntimeError: crc of block 3 differs from the stored one", "integrity_mismatch"),
    ],
)
def test_the_message_decides_and_not_its_generic_class(message: str, reason: str) -> None:
    found = verdict(HEAD + message + "\n")
    assert (found.failed, found.reason, found.evidence) == (True, reason, message)


def test_a_message_over_several_lines_ends_the_log_without_an_exit_code() -> None:
    text = HEAD + "ValueError: run.toml has 12 errors:\n" + "".join(f"stage {n}: unknown word\n" for n in range(12))
    assert verdict(text, None).failed is True
    goes_on = HEAD + "ValueError: belt 3\n" + "".join(f"tray {n} is full\n" for n in range(40))
    assert verdict(goes_on, None).failed is False


def test_levels_and_second_readings_have_signatures() -> None:
    assert reading_ids("hang", 0.95, None) == [f"{READ}hang-sure"]
    assert reading_ids("hang", 0.95, "time_limit") == [f"{READ}hang-perhaps", f"{READ}time_limit-second"]
    assert reading_ids("hang", LEVELS[-1][1] - 0.01, None) == []
    known = load().signatures
    assert all(name in known for name in reading_ids("hang", 0.95, "time_limit"))


def test_of_two_near_readings_the_first_is_a_perhaps_and_the_second_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    near = learned.Reading("shape_error", 0.9, "incorrect_inputs")
    monkeypatch.setattr(learned, "read", lambda *_: near)
    found = verdict(HEAD + "widgets.Stuck: belt 3\n")
    assert (found.reason, found.confidence, found.others[0]) == ("shape_error", 0.5, "incorrect_inputs")


def test_without_the_model_the_tables_alone_decide() -> None:
    plain = load(learned=False)
    text = (HEAD + "RuntimeError: every licence of the solver is in use by others\n").encode()
    for reader in (scanner(), Scanner(plain)):
        scan = reader.scan(io.BytesIO(text))
        found = classify([*scan.matches, *scan.telling], plain, FAILED)
        assert not (found.signature or "").startswith((READ, "learned"))


def test_the_model_is_plain_data_that_survives_a_copy(tmp_path: Path) -> None:
    own = learned.model()
    own.save(tmp_path, {})
    with np.load(tmp_path / "weights.npz", allow_pickle=False) as arrays:
        assert {name: array.dtype.kind for name, array in arrays.items()} == {"steps": "i", "scale": "f"}
        assert np.abs(arrays["steps"] * arrays["scale"] - own.weights).max() < 1e-5
    assert list(own.odds) == sorted(own.odds)
    assert list(own.shares) == sorted(own.shares)


def test_a_program_that_failed_without_a_word_left_nothing_in_its_log() -> None:
    for text in ("", "\n \n"):
        found = verdict(text)
        assert (found.failed, found.reason) == (True, "nothing_logged")
        assert verdict(text, None).failed is False
    assert verdict("step 1\nbelt three cannot move\n").reason != "nothing_logged"


def test_a_killed_process_precedes_what_its_peers_say_of_the_connection() -> None:
    text = (
        "run.sh: line 3: 4711 Killed                  python worker.py\n"
        + HEAD
        + "ConnectionResetError: [Errno 104] Connection reset by peer\n"
    )
    assert verdict(text).reason == "process_killed"


def test_an_exit_code_gives_way_to_the_line_that_says_why() -> None:
    text = "escript: exception error: no match of right hand side value {error,enoent}\n"
    assert verdict(text, Facts(exit_code=127)).reason == "incorrect_inputs"
    assert verdict("step 1\n", Facts(exit_code=127)).reason == "command_not_found"


def test_a_step_s_own_cause_precedes_that_it_failed() -> None:
    failed = "make: *** [Makefile:2: rows] Error 1\n"
    assert verdict(failed).reason == "step_failed"
    assert verdict("sort: cannot read: raw.csv: No such file or directory\n" + failed).reason == "incorrect_inputs"


@pytest.mark.parametrize(
    "text",
    [
        "make: [Makefile:2: all] Error 1 (ignored)\ntrained\n",
        "test_known XFAIL (out of memory on purpose)\n===== 2 passed, 1 xfailed in 0.31s =====\n",
        "run.sh: line 3: 4711 Killed                  python worker.py (expected)\ndone\n",
        "helper was killed as planned\ntraining finished\n",
    ],
)
def test_expected_failures_are_none(text: str) -> None:
    assert verdict(text, None).failed is False
