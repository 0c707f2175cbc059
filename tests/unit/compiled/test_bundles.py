"""Bundles of arrays: what their fields may not be called."""

from __future__ import annotations

import numpy as np
import pytest

from gpuctl.compiled.bundles import Bundle


@pytest.mark.parametrize("name", ["any", "partition", "max", "size", "copy", "field", "pprint"])
def test_a_field_of_a_record_may_not_hide_behind_an_attribute_of_numpy(name: str) -> None:
    # uncompiled, records.any is NumPy's method; compiled, it is the field
    record = np.dtype([("fine", "i8"), (name, "i8")])
    with pytest.raises(TypeError, match=f"Hidden.p: fields may not be called {name}"):
        type("Hidden", (Bundle,), {"fields": {"p": (record, 1)}})


@pytest.mark.parametrize("name", ["copy", "replace", "fields", "address"])
def test_a_field_may_not_be_called_as_something_of_every_bundle(name: str) -> None:
    with pytest.raises(TypeError, match=f"a field may not be called {name}"):
        type("Hidden", (Bundle,), {"fields": {name: ("f8", 1)}})
