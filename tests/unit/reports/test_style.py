"""The colours of the pages: text and marks can be told from what is behind them, in both themes."""

from __future__ import annotations

import re
from itertools import product

import pytest

from gpuctl.reports.html import _asset

TEXT = (
    *product(("ink", "soft", "accent"), ("paper", "panel")),
    ("warn", "warn-back"), ("ink", "warn-back"),
)  # fmt: skip
MARKS = tuple((f"s{number}", "paper") for number in range(1, 9))


def themes() -> dict[str, dict[str, str]]:
    """The variables of each block of colours: light, dark, and on paper."""
    style = _asset("report.css")
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", style)
    light, dark, paper = (dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{3,6})", block)) for block in blocks)
    return {"light": light, "dark": light | dark, "paper": light | paper}


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2.2 defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio, as WCAG 2.2 defines it: 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", ["light", "dark", "paper"])
def test_text_and_marks_stand_out(theme: str) -> None:
    colours = themes()[theme]
    weak = [
        (front, back, round(ratio, 2))
        for pairs, least in ((TEXT, 4.5), (MARKS, 3.0))
        for front, back in pairs
        if (ratio := contrast(colours[front], colours[back])) < least
    ]
    assert weak == []
