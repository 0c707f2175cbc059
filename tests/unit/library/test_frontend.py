"""What services tell a notebook: progress, warnings of faults, and nothing that is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import gpuctl
from gpuctl.replay.run import ReplayInterrupted
from gpuctl.services import replays

if TYPE_CHECKING:
    from pathlib import Path

SACCT = """JobID|State|Submit|Start|End
1|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:00:01|2024-01-01T00:01:01
"""


def test_a_log_that_cannot_be_read_is_a_warning_beside_one_that_can(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sacct.txt").write_text(SACCT)
    (tmp_path / "more.txt").write_text(SACCT.replace("2024", "year"))
    with pytest.warns(UserWarning, match=r"some logs could not be read:\n  .*more\.txt: "):
        trace = gpuctl.open(tmp_path)
    with trace:
        assert trace.sql("SELECT job FROM jobs")["job"].to_list() == ["1"]
    assert capfd.readouterr() == ("", "")


def test_logs_of_which_nothing_can_be_read_are_an_error_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text(SACCT.replace("2024", "year"))
    with pytest.raises(gpuctl.errors.InputError, match=r"nothing could be loaded:\n  .*sacct\.txt: "):
        gpuctl.open(tmp_path)


def test_several_values_are_for_sweep(sample_data: Path) -> None:
    with pytest.raises(gpuctl.errors.UsageError, match="several values") as caught:
        gpuctl.replay(sample_data / "jobs.csv", "4x8", ["las"], params={"las.quantum": "600,1200"})
    assert "gpuctl.sweep" in str(caught.value.hint)


def test_ctrl_c_while_changes_are_compared_keeps_the_replays_that_are_done(
    sample_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    run_on = replays.run_on

    def second_is_interrupted(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise ReplayInterrupted([], ["fifo"])
        return run_on(*given)

    monkeypatch.setattr(replays, "run_on", second_is_interrupted)
    with pytest.raises(ReplayInterrupted) as caught:
        gpuctl.replay(sample_data / "jobs.csv", "4x8", ["fifo"], scale_load=1.2)
    assert [each.policy for each in caught.value.outcomes] == ["fifo"]
