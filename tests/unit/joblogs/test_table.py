from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.joblogs.scan import Scanner
from gpuctl.joblogs.table import load
from tests.signatures import site_table

if TYPE_CHECKING:
    from pathlib import Path

REASON = """
[reason.licence]
title = "No licence left"
categories = ["infrastructure"]
"""
LICENCE = """
id = "site-licence"
reason = "licence"
examples = ["lmgrd: checkout of feature solver failed"]
"""
OWN = REASON + site_table(LICENCE)


def _file(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text)
    return path


def test_a_users_own_file_adds_reasons_and_signatures(tmp_path: Path) -> None:
    table = load([_file(tmp_path, OWN)])
    assert table.reasons["licence"].title == "No licence left"
    assert table.category("licence", "site-licence") == "infrastructure"
    assert Scanner(table).find("lmgrd: checkout of feature solver failed") == {"site-licence"}
    assert table.version != load().version


def test_the_version_depends_on_the_content_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert load([_file(tmp_path, OWN)]).version == load([_file(tmp_path / "a", OWN)]).version


def test_a_signature_of_the_same_id_takes_the_place_of_gpuctls(tmp_path: Path) -> None:
    first = next(iter(load().signatures))
    own = f"[[signature]]\nid = '{first}'\ntier = 'harmless'\npattern = 'never to be seen'\n"
    assert load([_file(tmp_path, own)]).signatures[first].pattern == "never to be seen"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("signature = 3", "not a list"),
        ("[signature]\nid = 'x'", "not a list"),
        ("[[signature]]\ntier = 'root'", "has no id"),
        ("[[signature]]\nid = 'x'\ntier = 'deadly'\npattern = 'a'", "tier 'deadly'"),
        ("[[signature]]\nid = 'x'\ntier = 'root'\npattern = 'abc'", "needs a reason"),
        ("[[signature]]\nid = 'x'\ntier = 'noise'\nreason = 'traceback'\npattern = 'abc'", "gives no reason"),
        ("[[signature]]\nid = 'x'\ntier = 'root'\nreason = 'bad luck'\npattern = 'abc'", "no reason 'bad luck'"),
        ("[[signature]]\nid = 'x'\ntier = 'root'\nreason = 'traceback'\npattern = ''", "one line of 1 to"),
        ("[[signature]]\nid = 'x'\ntier = 'root'\nreason = 'traceback'\npattern = 'a'\nregex = 'a'", "has 'regex'"),
        ("[[signature]]\nid = 'x'\ntier = 'root'\nreason = 'traceback'\npattern = 7", "is not text"),
        (
            "[[signature]]\nid = 'x'\ntier = 'root'\nreason = 'traceback'\npattern = 'a'\nexamples = 'a'",
            "is not a list of texts",
        ),
        ("[[signature]]\nid = 'x'\ntier = 'root'\nreason = 'traceback'\npattern = 'a'\ncategory = 'god'", "category"),
        ("[reason.X-1]\ntitle = 'x'", "lower-case"),
        ("[reason.x]\ncategories = ['god']", "categories must be of"),
        ("[other]\nx = 1", "has 'other' at its top level"),
        ("= 3", "is not valid TOML"),
        ("\udcff", "is not valid TOML"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=message) as caught:
        load([path])
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load([tmp_path / "none.toml"])


def test_a_pattern_that_does_not_compile_names_its_signature(tmp_path: Path) -> None:
    own = "[[signature]]\nid = 'back'\ntier = 'root'\nreason = 'traceback'\npattern = '(a)b\\1'"
    table = load([_file(tmp_path, own)])
    two = {name: table.signatures[name] for name in (next(iter(table.signatures)), "back")}
    with pytest.raises(InputError, match="'back'"):
        Scanner(replace(table, signatures=two))


@pytest.mark.parametrize(
    ("more", "message"),
    [("examples = ['something else']", "its own example"), ("never = ['abcdef']", "which it must not")],
)
def test_examples_are_checked(tmp_path: Path, more: str, message: str) -> None:
    own = f"[[signature]]\nid = 'x'\ntier = 'root'\nreason = 'traceback'\npattern = 'abcdef'\n{more}\n"
    table = load([_file(tmp_path, own)])
    alone = replace(table, signatures={"x": table.signatures["x"]})
    with pytest.raises(InputError, match=message):
        Scanner(alone).check([table.signatures["x"]])
