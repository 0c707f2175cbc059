"""The example notebooks run in a real kernel, and their files are those that their text promises."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import nbformat
import pytest
from nbclient import NotebookClient

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "operators_week.ipynb": {"week.duckdb", "delays.pdf", "delays.csv", "week.html"},
    "five_policies.ipynb": {"waits.pdf", "waits.csv"},
    "my_job.ipynb": {"model"},
}


def test_each_notebook_is_run(root: Path) -> None:
    assert {path.name for path in (root / "examples/notebooks").glob("*.ipynb")} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_notebook(name: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUCTL_SAMPLES", str(root / "sample_data"))
    monkeypatch.setenv("GPUCTL_OUT", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(root / "examples/notebooks" / name, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    streams = [out for cell in notebook.cells for out in cell.get("outputs", ()) if out.output_type == "stream"]
    assert not streams, "gpuctl prints nothing"
    shown = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    screens = [html for out in shown if "<pre" in (html := out.get("data", {}).get("text/html", ""))]
    assert all(out.output_type == "execute_result" for out in shown if "<pre" in str(out.get("data"))), "one per cell"
    assert all(len(re.sub("<[^>]*>", "", html)) > 100 for html in screens), "a screen, not an empty box"
    assert FILES[name] <= {path.name for path in tmp_path.iterdir()}
