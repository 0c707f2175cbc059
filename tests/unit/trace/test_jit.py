"""What is used of Numba that it promises to nobody is there in the releases that are allowed, and in no others."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from typing import TYPE_CHECKING

import numba
import pytest
from numba.core import cgutils, codegen, typed_passes
from numba.core.caching import FunctionCache
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.cpu import CPUContext
from numba.core.typing.templates import AttributeTemplate
from numba.np import arrayobj

if TYPE_CHECKING:
    from pathlib import Path

PRIVATE = [
    (FunctionCache, "_index_key"),  # jit.compiled: a version in the key of compiled code
    (CompilerBase, "define_pipelines"),  # jit.inner: a pipeline of its own …
    (DefaultPassBuilder, "define_nopython_pipeline"),
    (typed_passes.NativeLowering, "run_pass"),  # … whose last pass makes no machine code
    (CPUContext, "get_executable"),
    (AttributeTemplate, "generic_resolve"),  # arrays: fields of bundles
    (arrayobj, "make_array"),
    (arrayobj, "populate_array"),
    (cgutils, "gep_inbounds"),
    (cgutils, "raw_memmove"),
    (numba.core.dispatcher.Dispatcher, "get_call_template"),  # jit.inner: one version for all constants
    (codegen, "JITCPUCodegen"),
]


@pytest.mark.parametrize(("owner", "name"), PRIVATE, ids=lambda value: str(value).rpartition(".")[2])
def test_private_parts_of_numba_are_there(owner: object, name: str) -> None:
    assert hasattr(owner, name)


@pytest.mark.parametrize("name", ["numba", "llvmlite"])
def test_no_later_release_than_the_tests_ran_with_is_allowed(name: str, root: Path) -> None:
    rules = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    rule = next(rule for rule in rules if rule.startswith(name + ">="))
    major, minor = (int(part) for part in version(name).split(".")[:2])
    assert rule == f"{name}>={major}.{minor},<{major}.{minor + 1}"


def test_code_of_another_version_is_not_loaded(tmp_path: Path) -> None:
    """Compiled code lies under the version that was given with it."""
    module = tmp_path / "small.py"
    module.write_text(
        "import sys\nfrom gpuctl.trace.jit import compiled\n\ndef f(x):\n    return x + 1\n\n"
        "f = compiled(f, version=sys.argv[1])\nf(1)\nprint(sum(f.stats.cache_hits.values()))\n"
    )
    environ = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": "0"}

    def hits(name: str, checked: str = "0") -> int:
        env = {**environ, "NUMBA_BOUNDSCHECK": checked}
        done = subprocess.run(
            [sys.executable, module, name], env=env, capture_output=True, text=True, check=True, timeout=240
        )
        return int(done.stdout)

    assert [hits("one"), hits("one"), hits("two"), hits("two")] == [0, 1, 0, 1]
    # nor is code that looks at every index taken for code that does not
    assert [hits("", "0"), hits("", "1"), hits("", "1"), hits("", "0")] == [0, 0, 1, 1]
