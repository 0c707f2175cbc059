"""Stores are made as the program makes them, not copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import new_stores

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _made() -> Iterator[None]:
    new_stores.make()
    yield
    new_stores.copy()
