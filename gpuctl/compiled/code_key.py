"""Keys compiled code by everything it is made of, so that other changes do not invalidate it.

That is the bytecode of a function and of all that it calls, their modules' names, the values that they take from these
modules, and the ``code_key`` of classes. Comments, line numbers and functions not called do not count.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.compiled.loading import load_compiler

if TYPE_CHECKING:
    from collections.abc import Callable

MACHINERY = tuple(Path(__file__).with_name(name) for name in ("code_key.py", "compiler.py", "jit.py"))
"""Files that affect the compiled code of any function."""

_FILES = frozenset(map(str, MACHINERY))


@functools.cache
def code_key(function: Callable[..., Any]) -> str:
    """Return a key of all that a function's compiled code depends on, except its argument types.

    Raises:
        TypeError: it uses a module value for which no key can be made.
    """
    # only then are the stand-ins of Python functions known
    load_compiler()
    parts = _Parts()
    parts.add(function)
    found = hashlib.sha256()
    for file in MACHINERY:
        found.update(file.read_bytes())
    found.update("\0".join(parts.texts).encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:16]


class _Parts:
    """The parts of code, as texts."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._seen: set[int] = set()

    def add(self, value: Any) -> None:
        # a Python function may stand for one that only compiled code calls (`gpuctl.compiled.jit.stands_for`)
        value = getattr(value, "_gpuctl_compiler", value)
        # compiled functions and Numba's intrinsics have what they were made of under this name
        value = getattr(value, "__wrapped__", value)
        if isinstance(value, FunctionType) and value.__code__.co_filename in _FILES:
            # the decorators themselves
            self.texts.append(value.__qualname__)
        elif isinstance(value, FunctionType):
            if id(value) not in self._seen:
                self._seen.add(id(value))
                self._add_function(value)
        elif isinstance(value, tuple):
            self.texts.append(f"{len(value)}(")
            for each in value:
                self.add(each)
        elif isinstance(value, (bool, int, float, complex, str, bytes, np.generic, np.dtype, type(None), type(...))):
            self.texts.append(f"{type(value).__name__} {value!r}")
        elif isinstance(value, np.ndarray):
            self.texts.append(f"{value.dtype!r} {value.shape} {value.tobytes().hex()}")
        elif isinstance(value, type):
            self.texts.append(f"{value.__module__}.{value.__qualname__} {getattr(value, 'code_key', '')}")
        elif isinstance(value, (BuiltinFunctionType, np.ufunc)):
            self.texts.append(value.__name__)
        else:
            raise TypeError(f"compiled code depends on {value!r:.200}, for which no key can be made")

    def _add_function(self, function: FunctionType) -> None:
        # Numba finds the globals of saved code by the module's name: a function that has moved is another one.
        self.texts.append(f"{function.__module__}.{function.__name__}")
        self.add(function.__defaults__)
        names: dict[str, None] = {}
        self._add_code(function.__code__, function.__doc__, names)
        for cell in function.__closure__ or ():
            self.add(cell.cell_contents)
        for name in names:
            value = function.__globals__.get(name, len)
            if not isinstance(value, ModuleType):
                self.add(value)
            elif value.__name__.partition(".")[0] == __name__.partition(".")[0]:
                # of a module of this package, what is used of it; other packages have releases, which Numba's own key
                # includes
                for taken in names:
                    self.add(getattr(value, taken, len))

    def _add_code(self, code: CodeType, doc: str | None, names: dict[str, None]) -> None:
        self.texts.append(code.co_code.hex())
        self.texts.append(repr((code.co_varnames, code.co_names, code.co_flags)))
        names.update(dict.fromkeys(code.co_names))
        # the first constant is the function's text, or None
        first = code.co_consts[:1] == (doc,)
        for value in code.co_consts[first:]:
            if isinstance(value, CodeType):
                self._add_code(value, None, names)
            elif isinstance(value, frozenset):
                self.texts.append(repr(sorted(map(repr, value))))
            else:
                self.texts.append(repr(value))
