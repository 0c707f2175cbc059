"""What of Numba compiles the hot loops; imported when the first of them is to run compiled (see `gpuctl.trace.jit`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
from numba.core import types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.core.typed_passes import NativeLowering

if TYPE_CHECKING:
    from collections.abc import Callable


def dispatcher(function: Callable[..., Any], version: str) -> Any:
    """Numba's compiler for a function that Python calls; see `gpuctl.trace.jit.compiled`."""
    try:
        found: Any = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return numba.njit(nogil=True)(function)
    cache: Any = getattr(found, "_cache", None)
    if getattr(numba.config, "BOUNDSCHECK", 0):
        version += " checked"
    if cache is not None:
        _forgive(cache._cache_file)
    if version and cache is not None:
        key = cache._index_key
        cache._index_key = lambda signature, codegen: (*key(signature, codegen), version)
    return found


def _forgive(files: Any) -> None:
    # an index that names something which is no longer there is one of an earlier release: there is nothing to load
    load = files._load_index

    def index() -> Any:
        try:
            return load()
        except (AttributeError, ImportError):
            return {}

    files._load_index = index


def inside(function: Callable[..., Any]) -> Any:
    """Numba's compiler for a function that only compiled code calls; see `gpuctl.trace.jit.inner`."""
    # Numba's own types do not list the two options about wrappers
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _Inside}
    found: Any = numba.njit(nogil=True, error_model="numpy", **options)(function)
    template = found.get_call_template
    found.get_call_template = lambda args, kws: template(tuple(map(numba.types.unliteral, args)), kws)
    return found


def type_of(compiler: Any) -> Any:
    """The type of such a function, or of one of Numba's intrinsics, where compiled code calls it."""
    if isinstance(compiler, Dispatcher):
        return types.Dispatcher(compiler)
    context: Any = cpu_target.typing_context
    # an intrinsic becomes known with the next look at all that was declared
    context.refresh()
    return context.resolve_value_type(compiler)


@register_pass(mutates_CFG=True, analysis_only=False)
class _LoweringInside(NativeLowering):
    _name = "gpuctl_lowering_inside"

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        # Numba keys compiled functions by a built-in function object each; this one is never called
        context.get_executable = lambda _library, _description, _environment: [].append
        try:
            return bool(super().run_pass(state))
        finally:
            del context.get_executable


class _Inside(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes = [(_LoweringInside if kind is NativeLowering else kind, text) for kind, text in manager.passes]
        inside = PassManager(manager.pipeline_name)
        for kind, text in passes:
            inside.add_pass(kind, text)
        inside.finalize()
        return [inside]
