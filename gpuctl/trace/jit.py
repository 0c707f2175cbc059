"""Compiles the few hot loops with numba; in the lowest room that may import more than the standard library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering

from gpuctl.trace.codekey import code_key

if TYPE_CHECKING:
    from collections.abc import Callable


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over arrays; it runs without the GIL, and uncompiled with ``NUMBA_DISABLE_JIT=1``.

    The compiled code is kept beside the function's file, or in the user's cache where that cannot be written to;
    where neither can be, each process compiles it anew. It is kept under a name of all that it was made of
    (`gpuctl.trace.codekey`): code of other sources is never loaded, and a change of what it does not call does not
    touch it. With ``NUMBA_BOUNDSCHECK=1`` an index past an array's end is an IndexError; that code is kept apart, which
    Numba itself does not do.
    """
    try:
        dispatcher = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return numba.njit(nogil=True)(function)
    cache: Any = getattr(dispatcher, "_cache", None)
    if cache is not None:
        key = cache._index_key
        cache._index_key = lambda signature, codegen: (*key(signature, codegen), _version(function))
    return dispatcher


def _version(function: Callable[..., Any]) -> str:
    return code_key(function) + (" checked" if getattr(numba.config, "BOUNDSCHECK", 0) else "")


def is_compiled(function: Any) -> bool:
    """Whether an earlier process left compiled code of this function, as its sources are now, that this one can load.

    True also where there is no place to keep any, and of functions that run uncompiled.
    """
    cache = getattr(function, "_cache", None)
    if cache is None or cache.cache_path is None:
        return True
    return any(key[-1] == _version(function.py_func) for key in cache._cache_file._load_index())


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only compiled code calls: as a part of its callers, never as code of its own.

    One version serves all numbers that it is called with; Numba would make one for each constant. No machine code is
    made of it and none is kept: that of the functions which Python calls holds it, and is optimized once. Numba would
    optimize each function together with all that it calls, again and again: that takes two to three times as long.
    """
    # Numba's own types do not list the two options about wrappers
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _Inside}
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy", **options)(function)
    template = getattr(dispatcher, "get_call_template", None)
    if template is not None:
        dispatcher.get_call_template = lambda args, kws: template(tuple(map(numba.types.unliteral, args)), kws)
    found: Callable[..., Any] = dispatcher
    return found


@register_pass(mutates_CFG=True, analysis_only=False)
class _LoweringInside(NativeLowering):
    _name = "gpuctl_lowering_inside"

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        library = state.library = _Part(context.codegen(), state.func_id.func_qualname)
        insert = context.insert_user_function
        # Numba keys compiled functions by a built-in function object each; this one is never called
        context.get_executable = lambda _library, _description, _environment: [].append
        context.insert_user_function = lambda key, description, _libraries: insert(
            key, description, [library, *library._linking_libraries]
        )
        try:
            return bool(super().run_pass(state))
        finally:
            del context.get_executable, context.insert_user_function


class _Part(JITCodeLibrary):
    """A function that is only linked: what Python calls links it and all that it calls, and optimizes them once."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True


class _Inside(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes = [(_LoweringInside if kind is NativeLowering else kind, text) for kind, text in manager.passes]
        inside = PassManager(manager.pipeline_name)
        for kind, text in passes:
            inside.add_pass(kind, text)
        inside.finalize()
        return [inside]
