"""What every page of a kind has to have, and code that documents show is code that runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpuctl.replay.policies import BUILT_IN

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RUN = {"notebooks.md", "published-figure.md"}
"""Pages whose Python tests/integration/test_library.py runs."""
POLICIES = sorted((DOCS / "reference" / "policies").glob("*.md"))
SECTIONS = sorted((DOCS / "reference" / "analyses").glob("*.md"))


def headings(page: Path) -> str:
    """The headings, and words in bold that begin a paragraph, of a page, in lower case."""
    return "\n".join(re.findall(r"^(?:#+ |\*\*|Recordings)(.*)$", page.read_text("utf-8"), re.MULTILINE)).lower()


@pytest.mark.parametrize("page", POLICIES, ids=lambda page: page.stem)
def test_a_policy_has_a_command_a_formula_caveats_and_how_it_was_checked(page: Path) -> None:
    text = page.read_text("utf-8")
    commands = re.findall(r"^gpuctl replay .*$", text, re.MULTILINE)
    assert any(re.search(rf"[ ,=]{re.escape(page.stem)}[ ,\n]", f"{line}\n") for line in commands)
    assert re.search(r"\bhow it was checked\b|^Recordings \(", text, re.MULTILINE | re.IGNORECASE)
    assert re.search(r"\b(ours|caveats|left out|not modelled)\b", text, re.IGNORECASE)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert re.search(r"^ {4,}.*(?:=| if ).*$", prose, re.MULTILINE), "no formula"


@pytest.mark.parametrize("page", SECTIONS, ids=lambda page: page.stem)
def test_a_section_has_a_command_definition_source_and_caveats(page: Path) -> None:
    assert re.search(r"^gpuctl analyze ", page.read_text("utf-8"), re.MULTILINE)
    found = headings(page)
    assert re.search(r"formula|definition|causes", found)
    assert re.search(r"^source$", found, re.MULTILINE)
    assert re.search(r"caveats|how far to trust it", found)


def test_the_index_has_every_document() -> None:
    listed = set(re.findall(r"\]\(([\w-]+/[\w-]+\.md)[)#]", (DOCS / "README.md").read_text("utf-8")))
    assert listed == {path.relative_to(DOCS).as_posix() for path in DOCS.glob("*/*.md")}


def test_python_in_documents_is_that_of_the_examples() -> None:
    there = [path.read_text("utf-8") for path in sorted(DOCS.glob("examples/**/*.py"))]
    shown = {
        (page.name, block)
        for page in DOCS.glob("**/*.md")
        for block in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    }
    assert {page for page, _ in shown} >= {"add-a-format.md", "write-a-policy.md"}
    assert [page for page, block in shown if page not in RUN and not any(block in code for code in there)] == []


@pytest.mark.parametrize(
    ("tool", "page", "word", "other"),
    [
        ("policy_pages.py", "docs/reference/policies/tiresias.md", "| `promote` | `8` |", "| `promote` | `9` |"),
        (
            "policy_pages.py",
            "docs/reference/policies.md",
            "| [fifo](policies/fifo.md) |",
            "| [fifo](policies/lifo.md) |",
        ),
        (
            "analysis_pages.py",
            "docs/reference/analyses/runtime.md",
            "| `p50_min` | min | median |",
            "| `p50_min` | min | mean |",
        ),
        ("analysis_pages.py", "docs/reference/analyses.md", "How long do jobs run?", "How long did jobs run?"),
    ],
)
def test_a_stale_page_is_found(tmp_path: Path, tool: str, page: str, word: str, other: str) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / tool, tmp_path / "tools")
    stale = tmp_path / page
    text = stale.read_text("utf-8")
    assert word in text
    stale.write_text(text.replace(word, other), "utf-8")

    def check(*options: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, str(tmp_path / "tools" / tool), *options]
        return subprocess.run(line, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)

    found = check("--check")
    assert found.returncode == 1
    assert f"{page}: not what the" in found.stderr
    assert check().returncode == 0
    assert stale.read_text("utf-8") == text
    assert check("--check").returncode == 0


def test_every_policy_has_a_small_figure_that_the_code_draws() -> None:
    folder = DOCS / "images" / "policies"
    assert {place.stem for place in folder.glob("*.svg")} == set(BUILT_IN)
    for place in folder.glob("*.svg"):
        text = place.read_text("utf-8")
        assert len(text) < 30_000, place
        assert "<script" not in text
        page = DOCS / "reference" / "policies" / f"{place.stem}.md"
        assert f"](../../images/policies/{place.stem}.svg)" in page.read_text("utf-8")
    # one that packs and takes turns, one that borrows nodes, and a plain one; `make docs` draws all
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "policy_figures.py", "--check", "fifo", "gandiva", "aryl"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
