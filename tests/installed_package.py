"""Makes an installed package, as far as Python's own finders look: a module, and metadata beside it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpuctl.analyze.registry import all_analyses
from gpuctl.core import plugins
from gpuctl.ingest.pipeline import registry

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def install(site: Path, name: str, points: dict[str, dict[str, str]], **modules: str) -> None:
    """Put a package's metadata and modules into a folder.

    Args:
        site: the folder, as of site-packages.
        name: of the package; its version is 1.2.
        points: by group, what each entry point's name stands for.
        modules: text of each module.
    """
    info = site / f"{name}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    groups = [f"[{group}]\n" + "".join(f"{key} = {at}\n" for key, at in each.items()) for group, each in points.items()]
    (info / "entry_points.txt").write_text("\n".join(groups))
    for module, text in modules.items():
        sys.modules.pop(module, None)
        (site / f"{module}.py").write_text(text)


def on_path(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process find the folder's packages, until the test ends."""
    monkeypatch.syspath_prepend(site)
    forget()


def forget() -> None:
    """Forget which packages there are."""
    plugins._every_point.cache_clear()
    plugins._points.cache_clear()
    registry.all_formats.cache_clear()
    all_analyses.cache_clear()
