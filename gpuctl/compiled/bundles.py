"""Bundles of arrays that compiled code takes as one pointer.

Numba flattens a tuple of forty arrays into three hundred arguments of every call: compiling takes minutes, and a call
microseconds. Here compiled code gets the address of a table of addresses and sizes, and reads the arrays it needs from
there; ``bundle.name`` is the array, compiled or not. The bundle keeps the arrays alive; compiled code holds no
references.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import weakref
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpuctl.compiled.jit import stands_for
from gpuctl.compiled.layout import Layout
from gpuctl.compiled.loading import when_compiling

_HERE = hashlib.sha256()
for _file in ("bundles.py", "bundle_types.py", "layout.py"):
    _HERE.update(Path(__file__).with_name(_file).read_bytes())


def _check_names(dtype: np.dtype[Any], what: str) -> None:
    """Check that uncompiled code can read fields of records by name, as compiled code does.

    Raises:
        TypeError: NumPy's arrays or records have a method or attribute of a field's name, which hides the field.
    """
    taken = [name for name in dtype.names or () if hasattr(np.recarray, name) or hasattr(np.record, name)]
    if taken:
        raise TypeError(f"{what}: fields may not be called {', '.join(taken)}: NumPy's own attributes hide them")


class _Records(np.recarray[Any, Any]):
    """Records whose elements have fields as attributes, four times as fast as NumPy's own."""

    __getitem__ = np.ndarray.__getitem__

    def __array_finalize__(self, _of: Any) -> None:
        """Return the array with its element type unchanged."""


@functools.cache
def _row(dtype: np.dtype[Any]) -> np.dtype[Any]:
    def setter(name: str) -> Any:
        def put(row: Any, value: Any) -> None:
            row[name] = value

        return put

    names = dtype.names or ()
    fields = {name: property(operator.itemgetter(name), setter(name)) for name in names}
    return np.dtype((type("Row", (np.void,), {"__slots__": (), **fields}), dtype))


def as_records(array: np.ndarray[Any, Any]) -> Any:
    """View the same memory as records whose fields are attributes."""
    return array.view(np.ndarray).view(_row(np.dtype((np.void, array.dtype)))).view(_Records)


def records(size: int, dtype: np.dtype[Any]) -> Any:
    """An array of zeroed records whose fields are attributes, compiled or not."""
    return as_records(np.zeros(size, dtype))


CACHE_LINE = 64
"""Bytes of a line of the processor's cache."""


def aligned_records(size: int, dtype: np.dtype[Any]) -> Any:
    """Zeroed records aligned to the cache line, so that each record spans as few lines as possible."""
    room = np.zeros(size * dtype.itemsize + CACHE_LINE, np.uint8)
    first = -room.ctypes.data % CACHE_LINE
    return as_records(room[first : first + size * dtype.itemsize].view(dtype))


class _Field:
    """One array of a bundle, as its class declares it."""

    def __init__(self, dtype: Any, dimensions: int) -> None:
        self.dtype = dtype
        self.dimensions = dimensions


def array_of(dtype: Any, dimensions: int = 1) -> Any:
    """Declare a field of any other type, such as ``i4``."""
    return _Field(dtype, dimensions)


def floats(dimensions: int = 1) -> NDArray[np.float64]:
    """Declare a field of numbers; `Bundle` has an example."""
    declared: NDArray[np.float64] = array_of("f8", dimensions)
    return declared


def ints(dimensions: int = 1) -> NDArray[np.int64]:
    """Declare a field of integers."""
    declared: NDArray[np.int64] = array_of("i8", dimensions)
    return declared


def words(dimensions: int = 1) -> NDArray[np.uint64]:
    """Declare a field of words of 64 bits."""
    declared: NDArray[np.uint64] = array_of("u8", dimensions)
    return declared


def flags(dimensions: int = 1) -> NDArray[np.bool_]:
    """Declare a field of booleans."""
    declared: NDArray[np.bool_] = array_of("?", dimensions)
    return declared


def rows(dtype: np.dtype[Any]) -> Any:
    """Declare a field of records."""
    return array_of(dtype)


Given = np.ndarray[Any, Any] | int | tuple[int, ...]
"""An array, or the size of one of zeros."""


class Bundle(Layout):
    """Arrays by name; subclasses declare them with `floats`, `ints`, `rows` …, and nowhere else.

    An example::

        class Line(Bundle):
            key = floats()
            queue = ints()

        line = Line(key=np.arange(9), queue=9)

    A number, or a tuple of them, is the size of an array of zeros; of an array that cannot be written a copy is taken.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declared = {name: (each.dtype, each.dimensions) for name, each in vars(cls).items() if isinstance(each, _Field)}
        for name, (dtype, _) in declared.items():
            if hasattr(Bundle, name) or name == "address":
                raise TypeError(f"{cls.__name__}: a field may not be called {name}: bundles have such an attribute")
            _check_names(np.dtype(dtype), f"{cls.__name__}.{name}")
            # an array of each bundle, not an attribute of the class
            delattr(cls, name)
        cls.fields = cls.fields | declared
        cls.code_key = hashlib.sha256(f"{_HERE.hexdigest()} {cls.fields!r}".encode()).hexdigest()[:16]

    def __init__(self, **arrays: Given) -> None:
        unknown = arrays.keys() ^ self.fields.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__}: {', '.join(sorted(unknown))}: missing, or not among its fields")
        self._slots = np.zeros(sum(1 + dimensions for _, dimensions in self.fields.values()), np.int64)
        self.address = int(self._slots.ctypes.data)
        self.put(**arrays)
        _LIVE[self.address] = self

    @property
    def _numba_type_(self) -> Any:
        # gives Numba the type of a bundle passed from Python
        from gpuctl.compiled.bundle_types import bundle_type

        kind: Any = type(self)
        return bundle_type(kind)

    def put(self, **arrays: Given) -> None:
        """Replace some arrays in place; the bundle keeps its address."""
        at = 0
        for name, (dtype, dimensions) in self.fields.items():
            if name in arrays:
                given = arrays[name]
                sized = isinstance(given, (int, np.integer, tuple))
                array = np.zeros(given, dtype) if sized else np.ascontiguousarray(given, dtype=dtype)
                if not array.flags.writeable:
                    # compiled code ignores the read-only flag: readers get copies
                    array = array.copy()
                if array.ndim != dimensions:
                    raise ValueError(f"{name}: {array.ndim} dimensions, expected {dimensions}")
                if array.dtype.names is not None:
                    array = as_records(array)
                setattr(self, name, array)
                self._slots[at : at + 1 + dimensions] = array.ctypes.data, *array.shape
            at += 1 + dimensions

    def replace(self, **arrays: Given) -> Self:
        """Return a copy with some arrays replaced."""
        return type(self)(**({name: getattr(self, name) for name in self.fields} | arrays))

    def copy(self) -> Self:
        """Return a copy with copies of all arrays."""
        return type(self)(**{name: getattr(self, name).copy() for name in self.fields})


_LIVE: weakref.WeakValueDictionary[int, Bundle] = weakref.WeakValueDictionary()


def opener(cls: type[Bundle]) -> Any:
    """Return a function for compiled code that returns the bundle at an address.

    Calls from Python that pass the address, a plain number, take a tenth of the time of those that pass the bundle.
    """

    def opened(address: int) -> Bundle:
        return _LIVE[address]

    def known() -> None:
        from gpuctl.compiled import bundle_types

        stands_for(opened, bundle_types.opener(cls))

    when_compiling(known)
    return opened


def move(array: Any, to: int, start: int, count: int) -> None:
    """Move numbers within an array; the two ranges may overlap.

    A loop would take ten times as long compiled: Numba allows negative indices there. All indices must be within the
    array.
    """
    array[to : to + count] = array[start : start + count].copy()


AT_ONCE = 32
"""Numbers that `first_in` and `last_in` look at."""


def first_in(array: Any, at: int, low: Any, high: Any) -> int:
    """Return the index of the first of 32 numbers from a position on that lies in `low` to `high`; 32: none.

    Compiled, they are compared at once, which Numba does not do in loops that end early. The array holds int64, and all
    32 positions must be within it.
    """
    some = array[at : at + AT_ONCE]
    found = np.flatnonzero((some >= low) & (some <= high))
    return int(found[0]) if found.size else AT_ONCE


def last_in(array: Any, at: int, low: Any, high: Any) -> int:
    """Return the index of the last such number, see `first_in`; -1: none."""
    some = array[at : at + AT_ONCE]
    found = np.flatnonzero((some >= low) & (some <= high))
    return int(found[-1]) if found.size else -1


def _known() -> None:
    from gpuctl.compiled import bundle_types

    stands_for(move, bundle_types.move)
    stands_for(first_in, bundle_types.looker(last=False, width=AT_ONCE))
    stands_for(last_in, bundle_types.looker(last=True, width=AT_ONCE))


when_compiling(_known)
