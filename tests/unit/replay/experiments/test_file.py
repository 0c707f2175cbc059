from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.replay.experiments.file import read

if TYPE_CHECKING:
    from pathlib import Path

FIFO = '[[policies]]\npolicy = "fifo"\n'


def test_the_file_of_the_documents(root: Path) -> None:
    text = (root / "docs/examples/experiment.toml").read_text("utf-8")
    assert f"```toml\n{text}```" in (root / "docs/how-to/replay.md").read_text("utf-8")
    file = read(root / "docs/examples/experiment.toml")
    assert [path.resolve() for path in file.inputs] == [root / "sample_data/jobs.csv"]
    assert file.factors == {"scale_load": ("0.8", "1", "1.2")}
    assert [(each.name, each.label, each.params) for each in file.policies] == [
        ("fifo", "fifo", {}),
        ("patient=tiresias", "patient", {"promote": ("4", "8"), "limits": ("600,7200",)}),
    ]
    assert (file.cluster, file.seeds, file.blocks, file.baseline) == ("4x8", ("1", "2", "3"), "days", "fifo")
    assert file.measures == ("wait_mean_s", "wait_p95_s", "slowdown_p95")


def test_factors_are_a_number_or_an_array(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(FIFO + "[factors]\nscale_load = 1.5\nadd_nodes = [0, 1]\n")
    assert read(tmp_path / "sweep.toml").factors == {"scale_load": ("1.5",), "add_nodes": ("0", "1")}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("seeds = 1", "policies: found nothing, expected at least one"),
        ("polices = 1", "polices: no such key"),
        ("= 1", "is not valid TOML"),
        ("cluster = 4\n" + FIFO, "cluster: found 4, expected a text"),
        ("input = [1]\n" + FIFO, "input: found [1], expected a text, or an array"),
        ('blocks = "months"\n' + FIFO, "blocks: found 'months', expected one of days, weeks, users, none"),
        ('measures = ["wait"]\n' + FIFO, "measures: found 'wait', expected one of"),
        ('baseline = "las"\n' + FIFO, "baseline: found 'las', expected one of fifo"),
        ('[factors]\nscale_load = "1:2"\n[factors.x]\n' + FIFO, "factors.x: no such key"),
        ('[factors]\nscale_load = "2:1:1"\n' + FIFO, "expected FIRST:LAST:STEP"),
        ("[factors]\nscale_load = []\n" + FIFO, "factors.scale_load: found an empty array"),
        (FIFO + "[policies.params]\nx = [[1]]\n", "policies[1].params.x: found [1], expected a text, a number"),
        (FIFO + "params = 3\n", "policies[1].params: found 3, expected a table"),
        (FIFO + FIFO, "policies: found 'fifo' twice"),
        ('[[policies]]\npolicy = "fifo,las"\n', "policies[1].policy: found 'fifo,las', expected the name of one"),
        ('[policies]\npolicy = "fifo"\n', "policies: found {'policy': 'fifo'}, expected tables"),
    ],
)
def test_errors_name_the_file_the_key_and_what_was_expected(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read(path)
    assert error.value.message.startswith(f"{path}: ")
    assert told in error.value.message
