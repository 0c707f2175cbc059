"""Writes tables as LaTeX with booktabs, rounded for reading; text from logs cannot become commands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.reports.cell_text import shown_columns, visible
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpuctl.core.results import Analysis, ResultTable

_COMMANDS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
    "[": "{[}", "]": "{]}",
}  # fmt: skip
"""Characters that LaTeX reads as commands, as parts of ligatures, or as arguments of the line break before them."""
_TRANSLATION = str.maketrans(_COMMANDS)
_DASHES = re.compile("(?<=-)(?=-)")
"""Between hyphens that LaTeX would join to a dash."""


def escaped(text: str) -> str:
    """Return text that LaTeX prints literally (with T1 fonts and ``textcomp``)."""
    return _DASHES.sub("{}", visible(text).translate(_TRANSLATION))


def latex(analysis: Analysis, tables: Sequence[ResultTable]) -> Iterator[str]:
    r"""Yield a ``table`` for each result table: ``\usepackage{booktabs}``, title as caption, its name as label.

    Numbers are rounded as on a terminal, minus signs are in math mode, and units stand in the heads.
    """
    yield f"% {' '.join(visible(analysis.cluster).split())}; requires \\usepackage{{booktabs}}\n"
    units = Units(analysis.tables)
    for table in tables:
        columns = shown_columns(table, units=units)
        kinds = "".join("r" if column.numeric else "l" for column in columns)
        heads = [f"{escaped(c.label)} ({escaped(c.unit)})" if c.unit else escaped(c.label) for c in columns]
        yield f"\\begin{{table}}\n\\centering\n\\caption{{{escaped(table.title)}}}\n\\label{{tab:{table.name}}}\n"
        yield f"\\begin{{tabular}}{{{kinds}}}\n\\toprule\n{' & '.join(heads)} \\\\\n\\midrule\n"
        for cells in zip(*(column.cells for column in columns), strict=True):
            line = [
                _number(cell) if column.numeric else escaped(cell) for cell, column in zip(cells, columns, strict=True)
            ]
            yield f"{' & '.join(line)} \\\\\n"
        yield "\\bottomrule\n\\end{tabular}\n\\end{table}\n\n"


def _number(cell: str) -> str:
    """Return a number with its minus sign in math mode; other cells of the column are text."""
    digits = cell.removeprefix("-").replace(",", "").replace(".", "")
    return f"${cell}$" if cell.startswith("-") and digits.isdecimal() else escaped(cell)
