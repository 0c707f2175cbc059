"""The documents keep their word: command lines run, links lead somewhere, help pages are current."""

from __future__ import annotations

import ast
import os
import re
import runpy
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.commands_not_run import NOT_RUN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import CompletedProcess

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
RUN_ELSEWHERE = ("make ", "git clone", "cd ")
STAND_INS = {
    "philly-traces": "sample_data/philly",
    "slurm-logs": "sample_data/failures",
    "yarn-logs": "tests/fixtures/yarn/3.5.0/hadoop-lab-resourcemanager-rm01.log.gz",
}
"""What the documents call the reader's own files, and what stands in for them."""
PLAIN = re.compile(r"""gpuctl(?: +(?:[\w./:=,+@%-]+|'[^'\\\n]*'|"[^"\\$`!\n]*"))*(?: +#.*)?""")
"""A command line of which a shell makes nothing but words, and leaves out a comment."""
RUN_BEFORE: set[tuple[str, ...]] = set()
"""Command lines that ran on nothing but what all documents have, and left nothing behind."""
DERIVED = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,vc1
2017-10-09 07:13:03,2951.0,4,11804.0,vc1
2017-10-10 23:59:59,86400.0,16,1382400.0,vc2
"""


def blocks(document: Path) -> Iterator[tuple[int, str, str]]:
    """Line number, language and text of each fenced block."""
    text = document.read_text("utf-8")
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, match.start()) + 1, match[1], match[2]


def shell_lines(language: str, text: str) -> Iterator[str]:
    """The command lines of a block; in a console block, those after a prompt. A quoted text may have several lines."""
    joined = re.sub(r"\\\n\s*", "", text)
    begun = ""
    for line in joined.splitlines():
        if language == "sh" and (begun or (line.strip() and not line.startswith("#"))):
            begun = f"{begun}\n{line}" if begun else line
            with suppress(ValueError):  # a quotation is open
                shlex.split(begun, comments=True)
                yield begun
                begun = ""
        elif language == "console" and line.startswith("$ "):
            yield line[2:]
    assert not begun, f"a quotation does not end: {begun}"


def by_shell(line: str, folder: Path, env: dict[str, str]) -> CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip


def contents(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_command_line_runs(
    document: Path, tmp_path: Path, thin_data: Path, gpuctl: Callable[..., CompletedProcess[str]]
) -> None:
    """In order, in one folder, so that a later one may use what an earlier one made."""
    (tmp_path / "sample_data").symlink_to(thin_data)
    for folder in ("docs", "examples", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for name, sample in STAND_INS.items():
        (tmp_path / name).symlink_to(sample)
    (tmp_path / "derived.csv").write_text(DERIVED)
    installed = Path(sys.executable).parent
    # the installed program itself is run by test_editable.py and, in an empty environment, by test_wheel.py
    path = os.pathsep.join([str(installed), os.environ["PATH"]])
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    given = contents(tmp_path)
    for number, language, text in blocks(document):
        for line in shell_lines(language, text):
            if line.startswith((*RUN_ELSEWHERE, *NOT_RUN.get(named(document), ()))):
                continue
            words = shlex.split(line, comments=True) if PLAIN.fullmatch(line) else []
            own = contents(tmp_path) - given
            alone = bool(words) and not any(name in word for name in own for word in words)
            if alone and tuple(words) in RUN_BEFORE:
                continue
            done = gpuctl(*words[1:], cwd=tmp_path, check=False) if words else by_shell(line, tmp_path, env)
            expected = re.search(r"# exits with (\d+)", line)
            assert done.returncode == (int(expected[1]) if expected else 0), (
                f"{named(document)}:{number}: {line}\n{done.stdout}\n{done.stderr}"
            )
            assert "Traceback" not in done.stderr
            if alone and done.returncode == 0 and contents(tmp_path) == own | given:
                RUN_BEFORE.add(tuple(words))


def test_lines_that_are_not_run_are_there_and_no_document_talks_of_tests() -> None:
    for name, beginnings in NOT_RUN.items():
        lines = [line for _, language, text in blocks(ROOT / name) for line in shell_lines(language, text)]
        for beginning in beginnings:
            assert any(line.startswith(beginning) for line in lines), f"{name}: {beginning}"
    for document in DOCUMENTS:
        assert "not run by the tests" not in document.read_text("utf-8"), named(document)


def test_the_readme_is_short_and_runs_on_what_the_checkout_has() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert text.count("\n") < 120
    commands = [line for _, language, body in blocks(ROOT / "README.md") for line in shell_lines(language, body)]
    assert not [line for line in commands if any(name in line for name in (*STAND_INS, "derived.csv"))]


def test_the_screen_in_the_readme_is_that_of_the_tutorial() -> None:
    (screen,) = [body for _, language, body in blocks(ROOT / "README.md") if language == "text"]
    tutorial = (ROOT / "docs" / "tutorials" / "start.md").read_text("utf-8")
    assert [part for part in screen.split("\n\n") if part not in tutorial] == []


def test_no_picture_in_the_readme_needs_a_checkout() -> None:
    """An index of packages shows the README without the files beside it."""
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert [address for address in pictures if not address.startswith("https://")] == []


def test_make_targets_in_documents_exist(root: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        prose = document.read_text("utf-8")
        told = set(re.findall(r"`make ([a-z]+)[^`]*`", prose)) | set(re.findall(r"^make ([a-z]+)", prose, re.MULTILINE))
        assert told <= targets, named(document)


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", document.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        place, _, anchor = target.partition("#")
        file = (document.parent / place).resolve() if place else document
        assert file.exists(), f"{named(document)}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.MULTILINE)
            assert anchor in {as_anchor(heading) for heading in headings}, f"{named(document)}: {target}"


def as_anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("tool", ["metric_pages", "analysis_pages", "policy_pages", "schema_page", "library_page"])
def test_generated_parts_of_the_documents_are_current(root: Path, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    monkeypatch.setattr(sys, "argv", [f"{tool}.py", "--check"])
    runpy.run_path(str(root / "tools" / f"{tool}.py"), run_name="__main__")


def test_help_pages_in_the_document_are_current(root: Path, gpuctl: Callable[..., CompletedProcess[str]]) -> None:
    tool = runpy.run_path(str(root / "tools" / "help_pages.py"))
    now = (root / "docs" / "reference" / "cli.md").read_text("utf-8")
    pages = tool["all_pages"](run=gpuctl)
    assert now == tool["with_pages"](now, pages), "run: make docs"
    # as its own process says it, too
    for line in ("gpuctl", "gpuctl predict", "gpuctl predict wait"):
        assert pages[line] == tool["help_page"](*line.split()[1:])


def test_every_command_and_option_has_help() -> None:
    from typer.main import get_command

    from gpuctl.cli.main import app

    silent = []
    left: list[tuple[str, Any]] = [("gpuctl", get_command(app))]
    for line, command in left:
        left += [(f"{line} {name}", below) for name, below in getattr(command, "commands", {}).items()]
        silent += [line] if not command.help else []
        silent += [f"{line} {param.name}" for param in command.params if not param.help]
    assert len(left) > 3
    assert silent == []


def test_exit_codes_in_the_document_are_those_of_the_program(root: Path) -> None:
    from gpuctl.core.errors import ExitCode

    page = (root / "docs" / "reference" / "cli.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| (\S.*) \|$", page, re.MULTILINE)
    assert [int(code) for code, _ in rows] == sorted(ExitCode)


def test_every_sql_file_is_explained(root: Path) -> None:
    """docs/reference/analyses.md lists each result table, which is named as its SQL file is."""
    explained = (root / "docs" / "reference" / "analyses.md").read_text("utf-8")
    missing = [path.stem for path in sorted((root / "queries").glob("*.sql")) if f"`{path.stem}`" not in explained]
    assert missing == []


def test_tables_in_the_readme_exist(root: Path) -> None:
    from gpuctl.analyze.registry import tables

    told = re.findall(r"^\| `(\w+)` \|", (root / "README.md").read_text("utf-8"), re.MULTILINE)
    assert len(told) > 5
    assert set(told) <= set(tables())


def test_changelog_and_citation_have_the_version(root: Path) -> None:
    source = ast.parse((root / "gpuctl" / "__init__.py").read_text("utf-8"))
    version = next(
        ast.literal_eval(node.value)
        for node in source.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__"
    )
    headings = re.findall(r"^## \[?([^\]\s]+)", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert version in headings
    assert f"version: {version}\n" in (root / "CITATION.cff").read_text("utf-8")
