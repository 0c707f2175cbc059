"""The tables that gpuctl brings: every signature against its own examples."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpuctl.core.errors import InputError
from gpuctl.joblogs.table import CATEGORIES, CAUSES, Tier
from tests.signatures import scanner, table

TABLE = table()
# those of endings are tested with their readers
EVERY = tuple(signature for signature in TABLE.signatures.values() if signature.pattern)
_UNBOUNDED_END = re.compile(r"(?<!\\)(?:\*|\+|,\})\)?\??$")


def test_every_signature_finds_its_examples_and_no_look_alike() -> None:
    assert [signature.id for signature in EVERY if not signature.examples or not signature.source] == []
    faults = []
    for signature in EVERY:
        try:
            scanner().check([signature])
        except InputError as error:
            faults.append(f"{signature.id}: {error.message}")
    assert faults == []


def test_a_signature_that_misses_its_example_is_a_fault() -> None:
    broken = replace(EVERY[0], examples=("nothing of the kind",))
    with pytest.raises(InputError, match=EVERY[0].id):
        scanner().check([broken])


def test_no_harmless_signature_hides_the_example_of_a_cause() -> None:
    hidden = {
        (signature.id, other)
        for signature in EVERY
        if signature.tier in CAUSES
        for line in signature.examples
        for other in scanner().find(line)
        if TABLE.signatures[other].tier == Tier.HARMLESS
    }
    assert hidden == set()


def test_an_example_gives_its_own_reason_as_far_as_one_line_can() -> None:
    # another signature of the same or a stronger tier must not say something else of the same line
    tiers = {tier: place for place, tier in enumerate(CAUSES)}
    contradicted = set()
    for signature in EVERY:
        if signature.tier not in CAUSES:
            continue
        for line in signature.examples:
            for other in (TABLE.signatures[name] for name in scanner().find(line)):
                if other.fallback > signature.fallback:
                    continue
                if other.tier in CAUSES and tiers[other.tier] < tiers[signature.tier]:
                    continue
                if other.tier == signature.tier and other.reason != signature.reason:
                    contradicted.add((signature.id, other.id))
    assert contradicted == set()


def test_there_are_several_hundred_and_every_reason_of_table_7_has_one() -> None:
    assert len(EVERY) >= 400
    of_table7 = {slug for slug, reason in TABLE.reasons.items() if reason.table7 is not None}
    assert len(of_table7) == 22
    assert of_table7 - {signature.reason for signature in EVERY} == {"no_signature"}


def test_every_reason_is_given_by_a_signature_except_for_logs_without_one() -> None:
    assert set(TABLE.reasons) - {signature.reason for signature in EVERY} == {"no_signature", "nothing_logged"}
    assert {category for reason in TABLE.reasons.values() for category in reason.categories} == set(CATEGORIES)


def test_no_pattern_ends_in_an_unbounded_repeat() -> None:
    # each further byte would be one more match to look at
    assert [signature.id for signature in EVERY if _UNBOUNDED_END.search(signature.pattern)] == []


def test_the_document_names_every_reason() -> None:
    document = (Path(__file__).parents[3] / "docs" / "how-to" / "failures.md").read_text("utf-8")
    assert [slug for slug in TABLE.reasons if f"| `{slug}` |" not in document] == []
