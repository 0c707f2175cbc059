"""Bundles of arrays that compiled code takes as one pointer.

Numba flattens a tuple of forty arrays into three hundred arguments of every call: compiling takes minutes, and a call
microseconds. Here compiled code gets the address of a table of addresses and sizes, and reads the arrays it needs from
there; ``bundle.name`` is the array, compiled or not. The bundle keeps the arrays alive; compiled code holds no
references.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from pathlib import Path
from typing import Any, ClassVar, Self

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np import arrayobj

_HERE = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _check_names(dtype: np.dtype[Any], what: str) -> None:
    """See that uncompiled code reads fields of records by their names, as compiled code does.

    Raises:
        TypeError: NumPy's arrays or records have a method or attribute of a field's name, which hides the field.
    """
    taken = [name for name in dtype.names or () if hasattr(np.recarray, name) or hasattr(np.record, name)]
    if taken:
        raise TypeError(f"{what}: fields may not be called {', '.join(taken)}: NumPy's own attributes hide them")


class Bundle:
    """Arrays by name; subclasses say which in ``fields``: name -> (dtype, dimensions).

    Attributes:
        code_key: a name of how compiled code finds the arrays.
    """

    fields: ClassVar[dict[str, tuple[Any, int]]] = {}
    code_key: ClassVar[str] = ""
    numba_type: ClassVar[Any] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, (dtype, _) in cls.fields.items():
            if hasattr(Bundle, name) or name == "address":
                raise TypeError(f"{cls.__name__}: a field may not be called {name}: that is something of every bundle")
            _check_names(np.dtype(dtype), f"{cls.__name__}.{name}")
        cls.code_key = hashlib.sha256(f"{_HERE} {cls.fields!r}".encode()).hexdigest()[:16]
        cls.numba_type = _BundleType(f"{cls.__module__}.{cls.__qualname__}-{cls.code_key}", cls)
        typeof_impl.register(cls)(lambda value, _context: type(value).numba_type)

    def __init__(self, **arrays: np.ndarray[Any, Any]) -> None:
        self._slots = np.zeros(sum(1 + dimensions for _, dimensions in self.fields.values()), np.int64)
        self.address = int(self._slots.ctypes.data)
        self.put(**{name: arrays[name] for name in self.fields})
        _LIVE[self.address] = self

    def put(self, **arrays: np.ndarray[Any, Any]) -> None:
        """Let other arrays take the place of some; the bundle, and its address, stay."""
        at = 0
        for name, (dtype, dimensions) in self.fields.items():
            if name in arrays:
                array = np.ascontiguousarray(arrays[name], dtype=dtype)
                if array.ndim != dimensions:
                    raise ValueError(f"{name}: {array.ndim} dimensions, expected {dimensions}")
                if array.dtype.names is not None:
                    array = array.view(np.recarray)
                setattr(self, name, array)
                self._slots[at : at + 1 + dimensions] = array.ctypes.data, *array.shape
            at += 1 + dimensions

    def replace(self, **arrays: np.ndarray[Any, Any]) -> Self:
        """The same with other arrays in the place of some."""
        return type(self)(**({name: getattr(self, name) for name in self.fields} | arrays))

    def copy(self) -> Self:
        """The same with copies of all arrays."""
        return type(self)(**{name: getattr(self, name).copy() for name in self.fields})


_LIVE: weakref.WeakValueDictionary[int, Bundle] = weakref.WeakValueDictionary()


def opener(cls: type[Bundle]) -> Any:
    """A function for compiled code that gives the bundle at an address.

    Calls from Python that pass the address, a plain number, take a tenth of the time of those that pass the bundle.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}:
        return _LIVE.__getitem__

    @intrinsic
    def opened(_context: Any, address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], cgutils.intp_t.as_pointer())

        return cls.numba_type(types.int64), generate

    return opened


def _mover() -> Any:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}:

        def plain(array: Any, to: int, start: int, count: int) -> None:
            array[to : to + count] = array[start : start + count].copy()

        return plain

    @intrinsic
    def compiled_move(_context: Any, array: Any, to: Any, start: Any, count: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            data = arrayobj.make_array(array)(context, builder, args[0]).data
            size = context.get_abi_sizeof(context.get_data_type(array.dtype))
            into, source = (cgutils.gep_inbounds(builder, data, place) for place in args[1:3])
            cgutils.raw_memmove(builder, into, source, args[3], cgutils.intp_t(size))
            return context.get_dummy_value()

        return types.void(array, to, start, count), generate

    return compiled_move


move = _mover()
"""``move(array, to, start, count)``: numbers of an array to another place in it, which may overlap the old one.

A loop would take ten times as long: Numba lets each index of it be negative. All of them must be places of the array.
"""

AT_ONCE = 32
"""Numbers that `first_in` and `last_in` look at."""


def _looker(*, last: bool) -> Any:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}:

        def plain(array: Any, at: int, low: int, high: int) -> int:
            some = array[at : at + AT_ONCE]
            found = np.flatnonzero((some >= low) & (some <= high))
            return int(found[-1 if last else 0]) if found.size else -1 if last else AT_ONCE

        return plain

    @intrinsic
    def compiled_look(_context: Any, array: Any, at: Any, low: Any, high: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            short, long = cgutils.int32_t, cgutils.intp_t
            several = ir.VectorType(long, AT_ONCE)
            all_first = ir.Constant(ir.VectorType(short, AT_ONCE), [0] * AT_ONCE)

            def each(value: Any) -> Any:
                one = builder.insert_element(ir.Constant(several, ir.Undefined), value, short(0))
                return builder.shuffle_vector(one, one, all_first)

            data = arrayobj.make_array(array)(context, builder, args[0]).data
            place = builder.bitcast(cgutils.gep_inbounds(builder, data, args[1]), several.as_pointer())
            values = builder.load(place, align=8)
            low = builder.icmp_signed(">=", values, each(args[2]))
            found = builder.and_(low, builder.icmp_signed("<=", values, each(args[3])))
            bits = builder.zext(builder.bitcast(found, ir.IntType(AT_ONCE)), long)
            if last:
                return builder.sub(long(63), builder.ctlz(bits, cgutils.false_bit))
            return builder.cttz(builder.or_(bits, long(1 << AT_ONCE)), cgutils.false_bit)

        return types.int64(array, types.int64, types.int64, types.int64), generate

    return compiled_look


first_in, last_in = _looker(last=False), _looker(last=True)
"""``first_in(array, at, low, high)``: which of the 32 numbers from a place on is the first that is no less than `low`
and no more than `high`; 32: none. ``last_in``: which is the last; -1: none.

They are compared at once, which Numba does not do with loops that end early. The array is of int64, and all 32 must be
places of it.
"""


class _BundleType(types.Type):
    def __init__(self, name: str, cls: type[Bundle]) -> None:
        super().__init__(name=name)
        self.layout = tuple(
            (n, np.dtype(d).descr if np.dtype(d).names else np.dtype(d).str, k) for n, (d, k) in cls.fields.items()
        )
        self.slot: dict[str, int] = {}
        self.array: dict[str, Any] = {}
        at = 0
        for field, (dtype, dimensions) in cls.fields.items():
            self.slot[field] = at
            self.array[field] = types.Array(numba.from_dtype(np.dtype(dtype)), dimensions, "C")
            at += 1 + dimensions


@register_model(_BundleType)
class _BundleModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, cgutils.intp_t.as_pointer())


@unbox(_BundleType)
def _unbox(_kind: Any, value: Any, c: Any) -> Any:
    number = c.pyapi.object_getattr_string(value, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(c.builder.bitcast(address, cgutils.intp_t.as_pointer()), is_error=c.pyapi.c_api_error())


@infer_getattr
class _BundleAttributes(AttributeTemplate):
    key = _BundleType

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        return kind.array.get(name)


@lower_getattr_generic(_BundleType)
def _get(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    array_type = kind.array[name]
    slot = kind.slot[name]

    def read(k: int) -> Any:
        return builder.load(cgutils.gep_inbounds(builder, value, k))

    array = arrayobj.make_array(array_type)(context, builder)
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(array_type.dtype)))
    shape = [read(slot + 1 + k) for k in range(array_type.ndim)]
    strides = [itemsize]
    for size in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], size))
    data = builder.inttoptr(read(slot), array.data.type)
    arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue()
