"""What is used of Numba that it promises to nobody is there in the releases that are allowed, and in no others."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from gpuctl.compiled.code_key import code_key
from gpuctl.replay.engine import instant_kernel
from gpuctl.replay.order import order_kernel
from gpuctl.replay.policies import BUILT_IN, find
from gpuctl.replay.policies.backfill import profile_kernel
from gpuctl.replay.policies.slurm import node_kernel
from gpuctl.replay.policies.yarn import fair_kernel
from gpuctl.replay.run import entries

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PRIVATE = [
    ("core.caching:FunctionCache", "_index_key"),  # jit.compiled: a name of its sources in the key of compiled code
    ("core.caching:IndexDataCacheFile", "_load_index"),  # jit.is_compiled
    ("core.compiler:CompilerBase", "define_pipelines"),  # jit.inner: a pipeline of its own …
    ("core.compiler:DefaultPassBuilder", "define_nopython_pipeline"),
    ("core.typed_passes:NativeLowering", "run_pass"),  # … whose last pass makes no machine code
    ("core.cpu:CPUContext", "get_executable"),
    ("core.cpu:CPUContext", "insert_user_function"),
    ("core.codegen:JITCodeLibrary", "_optimize_functions"),  # … and which is optimized as a part of its callers
    ("core.codegen:JITCodeLibrary", "_finalize_dynamic_globals"),
    ("core.typing.templates:AttributeTemplate", "generic_resolve"),  # arrays: fields of bundles
    ("np.arrayobj:", "make_array"),
    ("np.arrayobj:", "populate_array"),
    ("core.cgutils:", "gep_inbounds"),
    ("core.cgutils:", "raw_memmove"),
    ("core.dispatcher:Dispatcher", "get_call_template"),  # jit.inner: one version for all constants
    ("core.codegen:", "JITCPUCodegen"),
    ("core.base:BaseContext", "get_abi_sizeof"),  # remembered within one pass, as are these
    ("core.base:BaseContext", "get_getattr"),
    ("core.base:BaseContext", "get_function"),
    ("core.untyped_passes:", "InlineClosureLikes"),  # passes that few functions need
    ("core.typed_passes:", "NopythonRewrites"),
]
"""Module and class, and what is used of it."""


def test_private_parts_of_numba_are_there() -> None:
    missing = []
    for place, name in PRIVATE:
        module, _, kind = place.partition(":")
        owner = import_module(f"numba.{module}")
        if not hasattr(getattr(owner, kind) if kind else owner, name):
            missing.append(f"{place}.{name}")
    assert missing == []


@pytest.mark.parametrize("name", ["numba", "llvmlite"])
def test_no_later_release_than_the_tests_ran_with_is_allowed(name: str, root: Path) -> None:
    rules = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    rule = next(rule for rule in rules if rule.startswith(name + ">="))
    major, minor = (int(part) for part in version(name).split(".")[:2])
    assert rule == f"{name}>={major}.{minor},<{major}.{minor + 1}"


def run(folder: Path, program: str, **environ: str) -> str:
    """What a Python program in a folder prints, with a cache of compiled code there."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "NUMBA_DISABLE_JIT": "0", **environ}
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=240
    ).stdout.strip()


def test_code_of_other_sources_is_not_loaded(tmp_path: Path) -> None:
    """A change of what a function reads counts, in whatever file; one of anything else does not."""
    (tmp_path / "loop.py").write_text(
        "from helper import double\nfrom gpuctl.compiled.jit import compiled, is_compiled\n\n"
        "@compiled\ndef f(x):\n    return double(x) + 1\n"
    )
    program = (
        "from loop import f, is_compiled\nkept = is_compiled(f)\nprint(f(1), kept, sum(f.stats.cache_hits.values()))"
    )

    def told(helper: str, **environ: str) -> str:
        text = f"from gpuctl.compiled.jit import inner\n\nTWO = 2\n\n@inner\ndef double(x):\n    {helper}\n"
        (tmp_path / "helper.py").write_text(text)
        return run(tmp_path, program, PYTHONDONTWRITEBYTECODE="1", **environ)

    assert told("return TWO * x") == "3 False 0"
    assert told('"""A text."""\n    return TWO * x\n\ndef other():\n    return 3') == "3 True 1"
    assert told("return TWO * x\n\nTWO = 4") == "5 False 0"
    # nor is code that looks at every index taken for code that does not
    assert told("return TWO * x", NUMBA_BOUNDSCHECK="1") == "3 False 0"
    # nor code that is not made fast for code that is
    assert told("return TWO * x", NUMBA_BOUNDSCHECK="1", NUMBA_OPT="0") == "3 False 0"
    assert told("return TWO * x") == "3 True 1"


ORDERS = {"fifo", "fifo-skip", "sjf", "srtf", "srsf", "las", "fair", "random", "tiresias", "yarn-cs", "edf"}
"""Policies that one loop runs."""


def _keys() -> dict[str, str]:
    code_key.cache_clear()
    return {name: code_key(function) for name in BUILT_IN for function in entries(find(name))}


def _edit(monkeypatch: pytest.MonkeyPatch, function: Callable[..., object]) -> None:
    plain = inspect.unwrap(function)
    code = plain.__code__.replace(co_consts=(*plain.__code__.co_consts, "edited"))
    monkeypatch.setattr(plain, "__code__", code)


@pytest.mark.parametrize(
    ("edited", "those"),
    [
        (order_kernel.demotion, ORDERS),
        (fair_kernel.run, {"yarn-fair"}),
        (node_kernel.occupy, {"slurm"}),
        (profile_kernel.forget, {"conservative"}),
        (instant_kernel.step, set(BUILT_IN)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_edit_recompiles_what_calls_it(
    edited: Callable[..., object], those: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _keys()
    _edit(monkeypatch, edited)
    after = _keys()
    assert {name for name in before if before[name] != after[name]} == those


def test_a_function_that_moves_to_another_module_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def inner() -> int:
        return 1

    def outer() -> int:
        return inner()

    before = code_key(outer)
    code_key.cache_clear()
    assert code_key(outer) == before
    monkeypatch.setattr(inner, "__module__", "gpuctl.moved")
    code_key.cache_clear()
    assert code_key(outer) != before


def test_keys_are_the_same_in_every_process(tmp_path: Path) -> None:
    program = (
        "from gpuctl.replay.policies.slurm.slurm_kernel import run\nfrom gpuctl.compiled.code_key import code_key\n"
    )
    program += "print(code_key(run))"
    assert run(tmp_path, program, PYTHONHASHSEED="1") == _keys()["slurm"]


def test_code_without_a_key_is_not_compiled_silently() -> None:
    def reads() -> object:
        return THINGS

    with pytest.raises(TypeError, match="for which no key can be made"):
        code_key(reads)


THINGS = {"a": 1}


COPIES = re.compile(r"\[[^\]]*:[^\]]*\] \+?= (?!-?[\d.]+$|-?np\.(inf|nan)$|[A-Z_]+$)|np\.(arg)?sort\(")


def test_policies_compile_no_parts_of_numba_that_cost_seconds(root: Path) -> None:
    """An array copied to another brings Numba's strings with it, for its error; a sort, a merge sort in three parts."""
    found = []
    for path in sorted((root / "gpuctl" / "replay").rglob("*_kernel.py")):
        functions = [each for each in ast.parse(path.read_text()).body if isinstance(each, ast.FunctionDef)]
        marked = [each for each in functions if each.decorator_list]
        lines = [ast.unparse(node) for each in marked for node in ast.walk(each) if isinstance(node, ast.stmt)]
        found += [f"{path.name}: {line}" for line in lines if "\n" not in line and COPIES.search(line)]
    assert found == []
