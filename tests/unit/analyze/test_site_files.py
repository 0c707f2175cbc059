"""quotas.csv and racks.csv: what is read, and what is refused with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze.racks import infer_racks
from gpuctl.analyze.site_files import read_quotas, read_racks
from gpuctl.core.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "site.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_quotas_by_either_name_with_blanks_and_byte_order_mark(tmp_path: Path) -> None:
    assert read_quotas(written(tmp_path, "vc,quota_gpus\na,8\nb,2.5\n")) == {"a": 8.0, "b": 2.5}
    assert read_quotas(written(tmp_path, "\ufeffquota_gpus, queue ,note\r\n 4, x y ,\r\n")) == {"x y": 4.0}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("vc,gpus\na,8\n", 1),
        ("vc,quota_gpus\na,8\nb,many\n", 3),
        ("vc,quota_gpus\na,-1\n", 2),
        ("vc,quota_gpus\na,nan\n", 2),
        ("vc,quota_gpus\n,8\n", 2),
        ("vc,quota_gpus\na\n", 2),
        ("vc,quota_gpus\na,8\na,9\n", 3),
        (b"vc,quota_gpus\n\xff\xfe,8\n", None),
    ],
)
def test_quotas_refused(tmp_path: Path, text: str | bytes, line: int | None) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as refused:
        read_quotas(path)
    assert refused.value.line == line
    assert str(path) in str(refused.value)


def test_racks(tmp_path: Path) -> None:
    assert read_racks(written(tmp_path, "node,rack\nm1,r1\n")) == {"m1": "r1"}
    assert read_racks(written(tmp_path, "machine,rack\nm1,r1\nm2,r1\n")) == {"m1": "r1", "m2": "r1"}
    with pytest.raises(InputError, match="second rack"):
        read_racks(written(tmp_path, "machine,rack\nm1,r1\nm1,r2\n"))
    with pytest.raises(InputError, match="cannot be read"):
        read_racks(tmp_path / "absent.csv")


def test_racks_are_inferred_from_gangs_that_stay_within_them() -> None:
    first, second = [f"a{k}" for k in range(6)], [f"b{k}" for k in range(6)]
    gangs = [[group[i], group[j]] for group in (first, second) for i in range(6) for j in range(i)] * 3
    found = infer_racks([*gangs, ["a0", "b0"], ["alone"]])
    assert {found[m] for m in first} == {found["a0"]}
    assert {found[m] for m in second} == {found["b0"]}
    assert found["a0"] != found["b0"]
    assert "alone" not in found
    assert found == infer_racks([["a0", "b0"], *reversed(gangs)])


def test_gangs_on_more_than_32_machines_show_nothing_of_racks() -> None:
    largest = [f"m{k:02}" for k in range(32)]
    assert infer_racks([largest]) == dict.fromkeys(largest, "guess-1")
    assert infer_racks([[*largest, "m32"]]) == {}
    assert infer_racks([["m0", "m1"], ["m2", "m2"]]) == {"m0": "guess-1", "m1": "guess-1"}
