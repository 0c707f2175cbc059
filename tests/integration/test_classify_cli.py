"""``gpuctl classify``: logs without a store."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import ExitCode
from tests.signatures import site_table

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

OUT_OF_MEMORY = """\
epoch 1 loss 0.693
Traceback (most recent call last):
  File "/home/a/train.py", line 90, in <module>
    main()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB
"""
SURVIVED = """\
WARNING: CUDA out of memory. Tried to allocate 2.00 GiB; trying a batch of 16
epoch 1 loss 0.693
epoch 2 loss 0.573
done
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_text(OUT_OF_MEMORY)
    (folder / "b.log.gz").write_bytes(gzip.compress(SURVIVED.encode()))
    for name, widget in (("c.log", 3), ("d.log", 77)):
        (folder / name).write_text(f"begin\nthe frobnicator {widget} is unhappy with /data/{name}\n")
    return folder


def classified(gpuctl: Run, *arguments: object) -> dict[str, dict[str, object]]:
    out = json.loads(gpuctl("classify", *arguments, "--json").stdout)
    return {str(one["file"]).rsplit("/", 1)[-1]: one for one in out["files"]}


def test_a_terminal_gets_lines_that_no_column_narrows(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from gpuctl.cli.classify import _print
    from gpuctl.ingest.joboutput.verdicts import judge
    from gpuctl.joblogs.table import load

    judged = [one for one in judge([logs], load()) if not hasattr(one, "why")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        _print(judged, color=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        f"{logs}/a.log: failed",
        f"  gpu_out_of_memory (ai_engine), confidence {judged[0].verdict.confidence:.2f}",
        f"  line 5: {OUT_OF_MEMORY.splitlines()[4]}",
    ]
    assert lines[3].endswith("b.log.gz: did not fail")


def test_every_file_gets_reason_category_confidence_line_and_evidence(gpuctl: Run, logs: Path) -> None:
    found = classified(gpuctl, logs)
    assert list(found) == ["a.log", "b.log.gz", "c.log", "d.log"]
    one = found["a.log"]
    assert (one["reason"], one["category"], one["line_no"]) == ("gpu_out_of_memory", "ai_engine", 5)
    assert one["evidence"] == OUT_OF_MEMORY.splitlines()[4]
    assert isinstance(one["confidence"], float)
    assert 0.7 < one["confidence"] < 1
    assert (one["lines"], one["bytes"]) == (5, len(OUT_OF_MEMORY))
    for name in ("b.log.gz", "c.log", "d.log"):
        assert (found[name]["failed"], found[name]["reason"]) == (False, None)


def test_with_an_exit_code_what_has_no_signature_is_clustered(gpuctl: Run, logs: Path) -> None:
    out = json.loads(gpuctl("classify", logs / "c.log", logs / "d.log", "--exit-code", "1", "--json").stdout)
    assert {one["reason"] for one in out["files"]} == {"no_signature"}
    assert out["files"][0]["evidence"] == "the frobnicator 3 is unhappy with /data/c.log"
    assert [(len(one["files"]), one["template"]) for one in out["unmatched"]] == [
        (2, "the frobnicator <*> is unhappy with <*>")
    ]


def test_an_exit_code_of_zero_is_no_failure(gpuctl: Run, logs: Path) -> None:
    assert classified(gpuctl, logs / "a.log", "--exit-code", "0")["a.log"]["failed"] is False


def test_files_of_one_attempt_are_judged_together(gpuctl: Run, logs: Path) -> None:
    out = json.loads(gpuctl("classify", logs / "c.log", logs / "a.log", "--together", "--json").stdout)
    (one,) = out["files"]
    assert one["files"] == [str(logs / "c.log"), str(logs / "a.log")]
    assert (one["reason"], one["stream"]) == ("gpu_out_of_memory", str(logs / "a.log"))


def test_a_table_of_ones_own(gpuctl: Run, logs: Path, tmp_path: Path) -> None:
    (tmp_path / "c.log").write_text("begin\nlmgrd: checkout of feature solver failed\n")
    own = tmp_path / "own.toml"
    own.write_text(site_table("id = 'site-frob'\nreason = 'storage_error'"))
    found = classified(gpuctl, tmp_path / "c.log", "--signatures", own)
    assert (found["c.log"]["reason"], found["c.log"]["signature"]) == ("storage_error", "site-frob")
    own.write_text("[[signature]]\nid = 'x'\ntier = 'root'\nreason = 'bad luck'\npattern = 'x'\n")
    done = gpuctl("classify", logs / "c.log", "--signatures", own, check=False)
    assert done.returncode == ExitCode.BAD_INPUT
    assert f"{own}: signature 'x': there is no reason 'bad luck'" in done.stderr


def test_the_table_names_the_line(gpuctl: Run, logs: Path) -> None:
    lines = gpuctl("classify", logs / "a.log", logs / "b.log.gz").stdout.splitlines()
    assert lines[0].split("\t") == ["file", "failed", "reason", "category", "confidence", "line", "evidence"]
    assert lines[1].split("\t")[1:4] == ["yes", "gpu_out_of_memory", "ai_engine"]
    assert lines[2].split("\t")[1:3] == ["no", ""]


def test_a_file_that_is_not_there(gpuctl: Run, tmp_path: Path) -> None:
    done = gpuctl("classify", tmp_path / "none.log", check=False)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "no such file" in done.stderr


def test_a_cut_file_is_read_as_far_as_it_goes_and_told(gpuctl: Run, tmp_path: Path) -> None:
    path = tmp_path / "cut.log.gz"
    path.write_bytes(gzip.compress(OUT_OF_MEMORY.encode() * 50)[:-20])
    done = gpuctl("classify", path, "--json")
    assert json.loads(done.stdout)["files"][0]["reason"] == "gpu_out_of_memory"
    assert "everything before it was read" in done.stderr
