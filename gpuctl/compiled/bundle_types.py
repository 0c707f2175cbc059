"""Numba types of bundles of arrays, and functions that Numba lacks (see `bundles`)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import NativeValue, infer_getattr, intrinsic, lower_getattr_generic, models, register_model, unbox
from numba.np import arrayobj

if TYPE_CHECKING:
    from gpuctl.compiled.layout import Layout


class _BundleType(types.Type):
    def __init__(self, name: str, cls: type[Layout]) -> None:
        super().__init__(name=name)
        self.layout = tuple(
            (n, np.dtype(d).descr if np.dtype(d).names else np.dtype(d).str, k) for n, (d, k) in cls.fields.items()
        )
        self.slot: dict[str, int] = {}
        self.itemsize: dict[str, int] = {}
        self.array: dict[str, Any] = {}
        at = 0
        for field, (dtype, dimensions) in cls.fields.items():
            self.slot[field] = at
            self.itemsize[field] = np.dtype(dtype).itemsize
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
    itemsize = context.get_constant(types.intp, kind.itemsize[name])
    shape = [read(slot + 1 + k) for k in range(array_type.ndim)]
    strides = [itemsize]
    for size in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], size))
    data = builder.inttoptr(read(slot), array.data.type)
    arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue()


@functools.cache
def bundle_type(cls: type[Layout]) -> Any:
    """Return Numba's type of bundles with one layout."""
    return _BundleType(f"{cls.__module__}.{cls.__qualname__}-{cls.code_key}", cls)


def opener(cls: type[Layout]) -> Any:
    """Compiled version of `gpuctl.compiled.bundles.opener`."""

    @intrinsic
    def opened(_context: Any, address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], cgutils.intp_t.as_pointer())

        kind: Any = cls
        return bundle_type(kind)(types.int64), generate

    return opened


@intrinsic
def move(_context: Any, array: Any, to: Any, start: Any, count: Any) -> Any:
    """Compiled version of `gpuctl.compiled.bundles.move`."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        data = arrayobj.make_array(array)(context, builder, args[0]).data
        size = context.get_abi_sizeof(context.get_data_type(array.dtype))
        into, source = (cgutils.gep_inbounds(builder, data, place) for place in args[1:3])
        cgutils.raw_memmove(builder, into, source, args[3], cgutils.intp_t(size))
        return context.get_dummy_value()

    return types.void(array, to, start, count), generate


def looker(*, last: bool, width: int) -> Any:
    """Compiled version of `gpuctl.compiled.bundles.first_in` and `last_in`, for `count` numbers at once."""

    @intrinsic
    def look(_context: Any, array: Any, at: Any, low: Any, high: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            short, long = cgutils.int32_t, cgutils.intp_t
            several = ir.VectorType(long, width)
            all_first = ir.Constant(ir.VectorType(short, width), [0] * width)

            def each(value: Any) -> Any:
                one = builder.insert_element(ir.Constant(several, ir.Undefined), value, short(0))
                return builder.shuffle_vector(one, one, all_first)

            data = arrayobj.make_array(array)(context, builder, args[0]).data
            place = builder.bitcast(cgutils.gep_inbounds(builder, data, args[1]), several.as_pointer())
            values = builder.load(place, align=8)
            low = builder.icmp_signed(">=", values, each(args[2]))
            found = builder.and_(low, builder.icmp_signed("<=", values, each(args[3])))
            bits = builder.zext(builder.bitcast(found, ir.IntType(width)), long)
            if last:
                return builder.sub(long(63), builder.ctlz(bits, cgutils.false_bit))
            return builder.cttz(builder.or_(bits, long(1 << width)), cgutils.false_bit)

        return types.int64(array, types.int64, types.int64, types.int64), generate

    return look
