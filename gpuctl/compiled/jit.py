"""Decorators of the hot loops: Python that runs compiled, or interpreted if that finishes sooner.

Numba itself is imported when a loop first runs compiled (`gpuctl.compiled.compiler`): that takes as long as all else
that a small replay needs.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from gpuctl.compiled.loading import LOCK, UNCOMPILED, load_compiler, when_compiling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy import generic
    from numpy.typing import NDArray

    _Number = TypeVar("_Number", bound=generic)

_INTERPRETED: ContextVar[bool] = ContextVar("gpuctl_interpreted", default=UNCOMPILED)


@contextmanager
def interpreted(on: bool = True) -> Iterator[None]:
    """Within this context, run this thread's loops interpreted or compiled. The results are the same."""
    before = _INTERPRETED.set(on or UNCOMPILED)
    try:
        yield
    finally:
        _INTERPRETED.reset(before)


class Loop:
    """A loop over arrays that Python calls.

    Attributes:
        py_func: the function as it is written; called as Numba calls it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._fast: Any = None

    def __call__(self, *args: Any) -> Any:
        """Run it: compiled, except within `interpreted`."""
        return self.py_func(*args) if _INTERPRETED.get() else (self._fast or self.fast)(*args)

    @property
    def fast(self) -> Any:
        """Return the compiled function; its first call compiles it or loads it from the cache."""
        with LOCK:
            if self._fast is None and UNCOMPILED:
                self._fast = self.py_func
            elif self._fast is None:
                load_compiler()
                from gpuctl.compiled.compiler import dispatcher

                self._fast = dispatcher(self.py_func)
        return self._fast

    @property
    def stats(self) -> Any:
        """Return Numba's account of compiled and loaded versions; None if nothing runs compiled."""
        return None if UNCOMPILED else self.fast.stats

    @property
    def _numba_type_(self) -> Any:
        # gives Numba the function that compiled code calls
        from gpuctl.compiled.compiler import type_of

        return type_of(self.fast)


def compiled(function: Callable[..., Any]) -> Loop:
    """Compile a loop over arrays; it runs without the GIL, and uncompiled with ``NUMBA_DISABLE_JIT=1``.

    The compiled code is cached next to the function's file, or in the user's cache directory if that is not writable;
    if neither is, each process compiles it again. Its key covers all that it was made of (`gpuctl.compiled.code_key`):
    code of other sources is never loaded, and a change of what it does not call does not touch it. With
    ``NUMBA_BOUNDSCHECK=1`` an index past an array's end is an IndexError; that code is cached separately, which Numba
    itself does not do.
    """
    return Loop(function)


def is_compiled(function: Loop) -> bool:
    """Return whether compiled code of this function's present sources, left by an earlier process, can be loaded.

    Also true if no cache is writable, and for functions that run uncompiled.
    """
    if UNCOMPILED:
        return True
    # before any import of Numba: beside another thread's import it would find half of it
    load_compiler()
    from gpuctl.compiled.compiler import is_cached

    return is_cached(function.fast, function.py_func)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only compiled code calls: as a part of its callers, never as code of its own.

    One version serves all numbers that it is called with; Numba would make one for each constant. It has no machine
    code of its own: its callers' code includes it and is optimized once. Numba would optimize each function together
    with all its callees again and again, which takes two to three times as long. Within an interpreted loop it is the
    plain function.
    """

    def known() -> None:
        from gpuctl.compiled.compiler import inline_only

        stands_for(function, inline_only(function))

    when_compiling(known)
    return function


def read_only(array: NDArray[_Number]) -> NDArray[_Number]:
    """Return a read-only view of the same numbers.

    Polars returns its columns read-only; NumPy's copies are writable. A loop is compiled once per combination of the
    two, unless all arrays are of one kind.
    """
    found = array.view()
    found.flags.writeable = False
    return found


def stands_for(function: Any, compiler: Any) -> None:
    """Let compiled code call another function in place of a Python function."""
    from gpuctl.compiled.compiler import type_of

    function._numba_type_ = type_of(compiler)
    # the type does not hold a reference to it
    function._gpuctl_compiler = compiler


def release_compiler_memory() -> None:
    """Return the memory of the compiler's own code to the system, some 70 MB, once only compiled code runs.

    Safe at any time: if something is compiled later, the pages are read again.
    """
    from gpuctl.core.memory import give_back_library

    give_back_library("libllvmlite")
