"""Every mark that a reader puts on jobs or attempts has words in the table ``data_quality``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from gpuctl.analyze import registry
from gpuctl.ingest import core

INGEST = Path(str(core.__file__)).parent.parent
_WORD = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+|mended|overlap|suspended")
_SQL = re.compile(
    r"THEN \['([a-z_0-9]+)'\]|\|\| \['([a-z_0-9]+)'\]|\['([a-z_0-9]+)'\] AS quirks|quirks?[^;]{0,60}?, '([a-z_0-9]+)'\)"
)
_NO_MARKS = {"attempt_quirks", "job_quirks", "run_span_s", "wait_s", "run_s", "run_sum_s", "run_last_s"}
"""Names of columns beside them."""


def marks_in(source: str) -> set[str]:
    """The words that a module's code puts on rows, as far as its shape shows: next to a name with "quirk" or "mark"."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "quirk" in node.value:
            found |= {word for groups in _SQL.findall(node.value) for word in groups if word}
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in {"words", "_words"}:
                found |= _keys(node)
            elif called.endswith(("quirks.append", "quirks.add")):
                found |= _strings(node)
            found |= {
                key for one in node.keywords if "quirk" in (one.arg or "") for key in _keys(one) | _literals(one.value)
            }
        elif isinstance(node, ast.FunctionDef) and "quirk" in node.name:
            found |= _keys(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = " ".join(ast.unparse(one) for one in targets)
            if "quirk" in names or names in {"on_attempts", "on_jobs", "marks"}:
                found |= _keys(node.value) | _literals(node.value)
    return {word for word in found if _WORD.fullmatch(word)} - _NO_MARKS


def _keys(node: ast.AST) -> set[str]:
    dicts = (one for one in ast.walk(node) if isinstance(one, ast.Dict))
    return {
        key.value for one in dicts for key in one.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _literals(node: ast.AST) -> set[str]:
    held = (one for one in ast.walk(node) if isinstance(one, ast.List | ast.Set | ast.Tuple))
    return {
        each.value
        for one in held
        for each in one.elts
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


def _strings(node: ast.AST) -> set[str]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def test_every_mark_of_every_reader_has_words() -> None:
    marks = {word: path.name for path in INGEST.rglob("*.py") for word in marks_in(path.read_text())}
    # one of each way in which readers write them
    assert marks.keys() >= {
        "no_wait", "work_in_steps", "mig_not_counted", "earlier_attempts_lost", "killed_at_limit", "not_in_job_table",
        "attempts_missing", "start_is_admission", "gpus_changed", "unknown_state", "exit_code_not_told",
    }  # fmt: skip
    sql = registry.all_analyses()["data_quality"].sql
    known = set(re.findall(r"\(\d+, '(?:job|attempt)', '([a-z0-9_]+)'", sql))
    assert {word: file for word, file in marks.items() if word not in known} == {}
