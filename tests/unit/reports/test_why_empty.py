"""What leaves figures empty is named on the screen and the page, and explained in the documents."""

from __future__ import annotations

from pathlib import Path

from gpuctl.reports.why_empty import DOCUMENT, EVERY

ROOT = Path(__file__).resolve().parents[3]


def test_each_reason_has_a_section_in_the_document() -> None:
    text = (ROOT / DOCUMENT).read_text("utf-8")
    headings = {line.removeprefix("## ").lower() for line in text.splitlines() if line.startswith("## ")}
    assert headings == {reason.what.lower() for reason in EVERY}
    assert {reason.anchor.lower() for reason in EVERY} == {heading.replace(" ", "-") for heading in headings}
