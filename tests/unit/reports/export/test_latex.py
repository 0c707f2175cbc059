"""Tables as LaTeX: what logs name cannot become a command."""

from __future__ import annotations

import re

import polars as pl
import pytest

from gpuctl.core.notes import note
from gpuctl.core.results import Column, ResultTable
from gpuctl.reports.export.latex import escaped, latex
from tests.unit.reports.fakes import HOSTILE, make_analysis


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b & 5 %", r"a\_b \& 5 \%"),
        (r"\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        ("--x---", "-{}-x-{}-{}-"),
        ("[1]", "{[}1{]}"),
        ("2^3~$x$", r"2\textasciicircum{}3\textasciitilde{}\$x\$"),
    ],
)
def test_text_is_printed_literally(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_tables_have_booktabs_heads_with_units_and_numbers_to_the_right() -> None:
    frame = pl.DataFrame({"name": ["a", *HOSTILE], "wait_s": [-1.5, *(120.0 for _ in HOSTILE)]})
    columns = (Column("name", "-", "Name."), Column("wait_s", "s", "Wait."))
    table = ResultTable("waits", "queueing", "Waits", "", note(""), (), columns, frame)
    text = "".join(latex(make_analysis(), [table]))
    assert r"\begin{tabular}{lr}" in text
    assert re.findall(r"\\\w+rule", text) == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert re.search(r"& \$-[\d.]+\$ ", text)
    commands = set(re.findall(r"\\([a-zA-Z]+)", text[text.index(r"\midrule") :]))
    printed = (
        "backslash",
        "asciicircum",
        "asciitilde",
        "less",
        "greater",
        "bar",
        "quotedbl",
        "quotesingle",
        "asciigrave",
    )
    assert commands <= {"midrule", "bottomrule", "end", *(f"text{name}" for name in printed)}
