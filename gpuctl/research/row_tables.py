"""Result tables, each declared once as a class: fields are columns, instances are rows."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform, get_type_hints

import polars as pl

from gpuctl.core.results import Column, ResultTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from gpuctl.core.notes import Note

_TYPES = {str: pl.String, int: pl.Int64, float: pl.Float64}


def column(unit: str, description: str) -> Any:
    """Declare a field of a row class, documented like `gpuctl.core.results.Column`."""
    return field(metadata={"unit": unit, "description": description})


@dataclass_transform(frozen_default=True, field_specifiers=(column,))
class Row:
    """A row of a result table; subclasses declare the table.

    Fields are made by `column`, of type str, int or float, optionally None. Numbers that are not finite become empty.

    Class arguments:
        name, section, title, question, detail, first_columns: as in `gpuctl.core.results.ResultTable`.
    """

    table_name: ClassVar[str]
    _about: ClassVar[dict[str, Any]]

    def __init_subclass__(
        cls, *, name: str, section: str, title: str, question: str, detail: bool = False, first_columns: int = 0
    ) -> None:
        cls.table_name = name
        cls._about = {
            "section": section, "title": title, "question": question, "detail": detail, "first_columns": first_columns,
        }  # fmt: skip
        dataclass(frozen=True)(cls)

    @classmethod
    def columns(cls) -> tuple[Column, ...]:
        """Return the columns in the order of the fields."""
        return tuple(Column(each.name, each.metadata["unit"], each.metadata["description"]) for each in _fields(cls))

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the Polars type of each column."""
        hints = get_type_hints(cls)
        return {
            each.name: next(kind for python, kind in _TYPES.items() if hints[each.name] in {python, python | None})
            for each in _fields(cls)
        }

    @classmethod
    def table(cls, rows: Sequence[Self] | pl.DataFrame, population: Note, notes: tuple[Note, ...] = ()) -> ResultTable:
        """Return the table with these rows; from a frame, the declared columns in the frame's types."""
        columns = cls.columns()
        if isinstance(rows, pl.DataFrame):
            frame = rows.select(each.name for each in columns)
        else:
            cells = [tuple(map(_finite, astuple(row))) for row in rows]  # type: ignore[call-overload]
            frame = pl.DataFrame(cells, schema=cls.schema(), orient="row")
        return ResultTable(
            name=cls.table_name, population=population, notes=notes, columns=columns, frame=frame, **cls._about
        )


def _fields(cls: type[Row]) -> Any:
    return fields(cls)  # type: ignore[arg-type]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
