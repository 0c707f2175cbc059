"""Bundles of arrays: what their fields may not be called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpuctl.compiled.bundles import Bundle, floats, ints, rows


@pytest.mark.parametrize("name", ["any", "partition", "max", "size", "copy", "field", "pprint"])
def test_a_field_of_a_record_may_not_hide_behind_an_attribute_of_numpy(name: str) -> None:
    # uncompiled, records.any is NumPy's method; compiled, it is the field
    record = np.dtype([("fine", "i8"), (name, "i8")])
    with pytest.raises(TypeError, match=f"Hidden.p: fields may not be called {name}"):
        type("Hidden", (Bundle,), {"p": rows(record)})


@pytest.mark.parametrize("name", ["copy", "replace", "fields", "address"])
def test_a_field_may_not_be_called_as_something_of_every_bundle(name: str) -> None:
    with pytest.raises(TypeError, match=f"a field may not be called {name}"):
        type("Hidden", (Bundle,), {name: floats()})


class _Pair(Bundle):
    key = floats()
    table = ints(2)


def test_a_bundle_takes_arrays_or_their_sizes() -> None:
    pair = _Pair(key=np.arange(3), table=(2, 5))
    assert (pair.key.dtype, pair.key.tolist()) == (np.float64, [0.0, 1.0, 2.0])
    assert (pair.table.dtype, pair.table.shape, pair.table.any()) == (np.int64, (2, 5), False)
    twin = pair.copy()
    twin.table[1, 4] = 7
    assert not pair.table.any()
    with pytest.raises(ValueError, match="table: 1 dimensions, expected 2"):
        pair.put(table=4)


@pytest.mark.parametrize("fields", [{"key": 3}, {"key": 3, "table": (1, 1), "tabel": 4}])
def test_a_field_that_is_missing_or_unknown_is_an_error(fields: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"_Pair: tabe?le?: missing, or not among its fields"):
        _Pair(**fields)
