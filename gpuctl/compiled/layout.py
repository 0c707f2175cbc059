"""How compiled code finds the arrays of a bundle."""

from __future__ import annotations

from typing import Any, ClassVar


class Layout:
    """The arrays that a kind of bundle has, in order.

    Attributes:
        fields: name -> (dtype, dimensions).
        code_key: identifies the layout in the names of compiled code.
    """

    fields: ClassVar[dict[str, tuple[Any, int]]] = {}
    code_key: ClassVar[str] = ""
