"""Nothing that is shipped leads to the program that has the name gpuctl on PyPI."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from gpuctl import DISTRIBUTION

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = (
    "gpuctl",
    "queries",
    "predictors",
    "reports",
    "docs",
    "examples",
    "README.md",
    "CONTRIBUTING.md",
    "pyproject.toml",
)
KINDS = {".py", ".sql", ".md", ".toml", ".yml", ".html", ".sh", ".txt"}
INSTALLS = re.compile(
    r"(?:\b(?:pip3?|pipx|uvx?|conda|mamba|poetry|pdm)\b[^\n]*?[ ](?:install|add|run|upgrade)\b|^dependencies = )"
    r"[^\n`]*[ '\"\[](?<!uninstall )gpuctl(?=[ '\"\[\]=<>~!,;)`]|$)",
    re.MULTILINE,
)


def _hints(text: str) -> list[str]:
    return [match[0] for match in INSTALLS.finditer(text)]


def test_hints_are_found() -> None:
    for hint in (
        "pip install gpuctl",
        "python -m pip install --upgrade gpuctl",
        "pip install 'gpuctl[learn]'",
        'dependencies = ["gpuctl"]',
        "uv tool install gpuctl",
        "pipx run gpuctl",
    ):
        assert _hints(hint), hint
    for sound in (
        "pip install .",
        "pip install 'gpuctl-toolkit[learn]'",
        "pip uninstall gpuctl",
        "pip install ./gpuctl.whl",
    ):
        assert not _hints(sound), sound


def test_no_text_says_to_install_the_other_gpuctl() -> None:
    files = [
        path for name in SHIPPED for path in ((ROOT / name).rglob("*") if (ROOT / name).is_dir() else [ROOT / name])
    ]
    texts = [path for path in files if path.suffix in KINDS and "signatures" not in path.parts]
    assert len(texts) > 500
    assert {str(path.relative_to(ROOT)): found for path in texts if (found := _hints(path.read_text("utf-8")))} == {}


def test_the_project_has_the_name_that_hints_give() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == DISTRIBUTION == "gpuctl-toolkit"
    assert project["scripts"] == {"gpuctl": "gpuctl.cli.start:main"}
