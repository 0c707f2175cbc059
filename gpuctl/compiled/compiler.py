"""The Numba compilers of the hot loops; imported when the first loop runs compiled (`gpuctl.compiled.jit`)."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from types import CodeType
from typing import TYPE_CHECKING, Any

import numba
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.imputils import lower_constant
from numba.core.registry import cpu_target
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes
from numba.extending import models, register_model

from gpuctl.compiled.code_key import code_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


FAST = 3
"""Numba's own level of optimization, which cached code does not record; NUMBA_OPT overrides it."""


def dispatcher(function: Callable[..., Any]) -> Any:
    """Return Numba's compiler for a function that Python calls; see `gpuctl.compiled.jit.compiled`."""
    try:
        found: Any = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return numba.njit(nogil=True)(function)
    cache: Any = getattr(found, "_cache", None)
    if cache is not None:
        _ignore_stale_index(cache._cache_file)
        key = cache._index_key
        cache._index_key = lambda signature, codegen: (*key(signature, codegen), _version(function))
    return found


def is_cached(compiler: Any, function: Callable[..., Any]) -> bool:
    """Return whether the cache has code of a function's current sources; see `gpuctl.compiled.jit.is_compiled`."""
    cache = getattr(compiler, "_cache", None)
    if cache is None or cache.cache_path is None:
        return True
    return any(key[-1] == _version(function) for key in cache._cache_file._load_index())


def _version(function: Callable[..., Any]) -> str:
    checked = " checked" if getattr(numba.config, "BOUNDSCHECK", 0) else ""
    # unoptimized code must not be loaded where fast code is expected
    level: Any = getattr(numba.config, "OPT", FAST)
    return code_key(function) + checked + ("" if level == FAST else f" level {int(level)}")


def _ignore_stale_index(files: Any) -> None:
    # an index that names missing objects is from an earlier release: there is nothing to load
    load = files._load_index

    def index() -> Any:
        try:
            return load()
        except (AttributeError, ImportError):
            return {}

    files._load_index = index


def inline_only(function: Callable[..., Any]) -> Any:
    """Return Numba's compiler for a function that only compiled code calls; see `gpuctl.compiled.jit.inner`."""
    # Numba's own types do not list the two options about wrappers
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _InlineCompiler}
    found: Any = numba.njit(nogil=True, error_model="numpy", **options)(function)
    template = found.get_call_template
    found.get_call_template = lambda args, kws: template(tuple(map(numba.types.unliteral, args)), kws)
    return found


def type_of(compiler: Any) -> Any:
    """Return the type of such a function, or of a Numba intrinsic, that compiled code calls."""
    if isinstance(compiler, Dispatcher):
        return _Function(compiler)
    context: Any = cpu_target.typing_context
    # an intrinsic becomes known when the registry is next refreshed
    context.refresh()
    return context.resolve_value_type(compiler)


class _Function(types.Dispatcher):
    """A function passed to compiled code to call; it is known at compile time."""


register_model(_Function)(models.OpaqueModel)


@lower_constant(_Function)
def _no_address(context: Any, _builder: Any, _kind: Any, _value: Any) -> Any:
    # Numba would write the address of a Python object there, which nothing reads and which keeps code out of its cache
    return context.get_dummy_value()


@register_pass(mutates_CFG=True, analysis_only=False)
class _InlineLowering(NativeLowering):
    _name = "gpuctl_inline_lowering"

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        library = state.library = _LinkedOnlyLibrary(context.codegen(), state.func_id.func_qualname)
        insert = context.insert_user_function
        # Numba keys compiled functions by a built-in function object each; this one is never called
        context.get_executable = lambda _library, _description, _environment: [].append
        context.insert_user_function = lambda key, description, _libraries: insert(
            key, description, [library, *library._linking_libraries]
        )
        try:
            with _remembering(context):
                return bool(super().run_pass(state))
        finally:
            del context.get_executable, context.insert_user_function


@contextmanager
def _remembering(context: Any) -> Iterator[None]:
    """Cache what Numba derives at each use of a variable: a sixth of the time of this pass."""
    function = context.get_function

    def found(fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        # arrays are checked for it, and none of the types used here has it
        if fn == "__array__":
            raise NotImplementedError
        return function(fn, sig, _firstcall)

    context.get_abi_sizeof = functools.cache(context.get_abi_sizeof)
    context.get_getattr = functools.cache(context.get_getattr)
    context.get_function = found
    try:
        yield
    finally:
        del context.get_abi_sizeof, context.get_getattr, context.get_function


class _LinkedOnlyLibrary(JITCodeLibrary):
    """A function that is only linked: its entry function links it and all it calls, and optimizes them once."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True


_OF_NESTED = {InlineClosureLikes, NopythonRewrites}
"""Passes for functions and comprehensions within a function, and for arithmetic with whole arrays: a tenth of all."""


class _InlineCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        nested = any(isinstance(each, CodeType) for each in self.state.func_id.code.co_consts)
        passes = [
            (_InlineLowering if kind is NativeLowering else kind, text)
            for kind, text in manager.passes
            if nested or kind not in _OF_NESTED
        ]
        chosen = PassManager(manager.pipeline_name)
        for kind, text in passes:
            chosen.add_pass(kind, text)
        chosen.finalize()
        return [chosen]
