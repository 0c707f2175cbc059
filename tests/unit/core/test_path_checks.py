"""Whether a name leads out of a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.path_checks import within

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["../secret", "a/../../secret", "/etc/passwd", "link", "link/secret", "a\0b"])
def test_names_that_lead_out_of_the_folder_name_nothing(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").touch()
    (folder / "link").symlink_to(tmp_path)
    assert within(folder, name) is None


@pytest.mark.parametrize("name", ["fifo.jsonl", "of/one.jsonl", "a/../fifo.jsonl"])
def test_names_within_it(tmp_path: Path, name: str) -> None:
    assert within(tmp_path, name) == tmp_path / name
