"""Folders of models: what was saved comes back, and what is not whole is refused without being run."""

from __future__ import annotations

import hashlib
import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.predictors import card as card_module
from gpuctl.predictors.card import CARD, PAGE, load_folder, page, save_folder

ABOUT = {"title": "A thing", "what": "Says things.", "scores": [{"predictor": "x", "mae_s": 1.5}]}
FILES = {"forest.txt": "tree ä\n", "settings.json": {"a": [1, None, 2.5]}, "count.npy": np.arange(6, dtype=np.int64)}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_folder(tmp_path / "model", "thing", ABOUT, FILES)
    return tmp_path / "model"


def rewrite(folder: Path, name: str, data: bytes) -> None:
    """Change a file as someone would who wants it to pass: the card is told of it."""
    (folder / name).write_bytes(data)
    card = json.loads((folder / CARD).read_text())
    card["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / CARD).write_text(json.dumps(card))


def array(value: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, value, **options)
    return out.getvalue()


def test_saved_values_round_trip(model: Path) -> None:
    folder = load_folder(model, "thing")
    assert folder.text("forest.txt") == FILES["forest.txt"]
    assert folder.json("settings.json") == FILES["settings.json"]
    assert folder.array("count.npy", "int64").tolist() == list(range(6))
    assert folder.card["title"] == "A thing"
    assert folder.card["made_with"]["lightgbm"]
    assert {file.name for file in model.iterdir()} == {*FILES, CARD, PAGE}


def test_the_same_model_gives_the_same_bytes(model: Path, tmp_path: Path) -> None:
    save_folder(tmp_path / "again", "thing", ABOUT, dict(reversed(FILES.items())))
    for file in model.iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name


def test_a_model_is_replaced_as_a_whole(model: Path) -> None:
    save_folder(model, "thing", ABOUT, {"other.txt": "x"})
    assert {file.name for file in model.iterdir()} == {"other.txt", CARD, PAGE}
    assert [file.name for file in model.parent.iterdir()] == ["model"]


def test_a_folder_without_a_model_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "thesis")
    for name in ("thesis", "file", "link"):
        with pytest.raises(UsageError, match=name):
            save_folder(tmp_path / name, "thing", ABOUT, FILES)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "x"


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_that_was_cut_off_or_changed_is_named(model: Path, name: str) -> None:
    whole = (model / name).read_bytes()
    (model / name).write_bytes(whole[:-1])
    with pytest.raises(InputError, match=f"{name}: is truncated: has {len(whole) - 1} bytes, expected {len(whole)}"):
        load_folder(model, "thing")
    (model / name).write_bytes(whole + b"x")
    with pytest.raises(InputError, match=f"{name}: is larger than "):
        load_folder(model, "thing")
    (model / name).write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    with pytest.raises(InputError, match=f"{name}: was changed"):
        load_folder(model, "thing")
    (model / name).unlink()
    with pytest.raises(InputError, match=f"{name}: cannot be read: No such file"):
        load_folder(model, "thing")


def test_every_truncation_of_the_card_is_refused(model: Path) -> None:
    card = (model / CARD).read_bytes()
    for size in range(0, len(card) - 2, 11):
        (model / CARD).write_bytes(card[:size])
        with pytest.raises(InputError, match=r"card\.json"):
            load_folder(model, "thing")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("gpuctl_model", 2, "is version 2, this gpuctl reads version 1"),
        ("gpuctl_model", True, "is version True"),
        ("kind", "other", "found a model of kind 'other', expected 'thing'"),
        ("kind", ["thing"], "found a model of kind"),
        ("files", {}, "expected an object with 1 to 64 names"),
        ("files", [], "expected an object"),
        ("files", {f"f{k}.txt": {} for k in range(65)}, "expected an object with 1 to 64 names"),
        ("files", {"../../etc/passwd": {}}, "not the name of a model file"),
        ("files", {"card.json": {}}, "not the name of a model file"),
        ("files", {"model.pkl": {}}, "not the name of a model file"),
        ("files", {"a.txt": 3}, "bytes of a.txt"),
        ("files", {"a.txt": {"bytes": -1, "sha256": "0" * 64}}, "bytes of a.txt"),
        ("files", {"a.txt": {"bytes": True, "sha256": "0" * 64}}, "bytes of a.txt"),
        ("files", {"a.txt": {"bytes": 2**40, "sha256": "0" * 64}}, "bytes of a.txt"),
        ("files", {"a.txt": {"bytes": 1, "sha256": "0" * 63 + "g"}}, "sha256 of a.txt"),
    ],
)  # fmt: skip
def test_a_card_that_is_wrong_is_reported(model: Path, key: str, value: Any, said: str) -> None:
    card = json.loads((model / CARD).read_text())
    (model / CARD).write_text(json.dumps(card | {key: value}))
    with pytest.raises(InputError, match=said) as error:
        load_folder(model, "thing")
    assert error.value.path == str(model / CARD)
    assert error.value.hint


@pytest.mark.parametrize("text", ["[]", "{}", "null", '{"gpuctl_model": NaN}', "[" * 100_000, "1" * 5000, "\xff"])
def test_an_invalid_card_is_reported(model: Path, text: str) -> None:
    (model / CARD).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"card\.json"):
        load_folder(model, "thing")


def test_no_link_is_followed(model: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes((model / "forest.txt").read_bytes())
    (model / "forest.txt").unlink()
    (model / "forest.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match=r"forest\.txt: cannot be read"):
        load_folder(model, "thing")


def test_no_folder_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected the folder of a model"):
        load_folder(tmp_path / "absent", "thing")
    with pytest.raises(InputError, match=r"card\.json: cannot be read"):
        load_folder(tmp_path, "thing")


class _Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a file of a model was unpickled",)


@pytest.mark.parametrize(
    "data",
    [
        array(np.array([_Trap()]), allow_pickle=True),
        array(np.array(["a"])),
        array(np.arange(6).reshape(2, 3).T),
        array(np.arange(6, dtype=">i8")),
        array(np.zeros(3, [("a", "f8")])),
        array(np.arange(6))[:-8],
        array(np.arange(6))[:20],
        array(np.arange(6)).replace(b"(6,)", b"(9,)"),
        array(np.arange(6)).replace(b"'shape': (6,), ", b"'shape': (-6, -1)"),
        array(np.arange(6)).replace(b"'shape': (6,), }", b"'shape': (9**9**9,)"),
        array(np.arange(6)).replace(b"'descr'", b"'dxscr'"),
        b"",
        b"PK\x03\x04",
    ],
)
def test_an_array_that_is_not_plain_numbers_is_refused(model: Path, data: bytes) -> None:
    rewrite(model, "count.npy", data)
    with pytest.raises(InputError, match=r"count\.npy"):
        load_folder(model, "thing")


def test_an_array_of_other_numbers_is_refused(model: Path) -> None:
    folder = load_folder(model, "thing")
    with pytest.raises(InputError, match="found int64 in 1 dimensions, expected float64 in 1"):
        folder.array("count.npy", "float64")
    with pytest.raises(InputError, match="expected int64 in 2"):
        folder.array("count.npy", "int64", 2)
    with pytest.raises(InputError, match=r"names no file absent\.npy"):
        folder.array("absent.npy", "int64")


@pytest.mark.parametrize("number", ["1" + 400 * "0", "1e999", "-1e999", "NaN", str(2**63), str(-(2**63) - 1)])
def test_a_number_that_no_model_holds_is_refused(model: Path, number: str) -> None:
    rewrite(model, "settings.json", f'{{"a": [{number}]}}'.encode())
    with pytest.raises(InputError, match="is not a number that a model can have"):
        load_folder(model, "thing")


def test_numbers_of_64_bits_are_read(model: Path) -> None:
    edges = [2**63 - 1, -(2**63), 1.7e308, -5e-324]
    rewrite(model, "settings.json", json.dumps(edges).encode())
    assert load_folder(model, "thing").json("settings.json") == edges


def test_text_must_be_utf8(model: Path) -> None:
    rewrite(model, "forest.txt", b"tree \xff")
    with pytest.raises(InputError, match=r"forest\.txt: is not UTF-8 text: byte 5"):
        load_folder(model, "thing")


def test_the_page_shows_what_the_card_says_and_takes_no_markup(model: Path) -> None:
    assert "| predictor | mae\\_s |\n|---|---|\n| x | 1.5 |" in (model / PAGE).read_text()
    hostile = {"title": "x\n# y <script>", "what": "[a](b)", "one": {"a|b": "c\nd"}, "two": ["`e`"]}
    text = page(hostile)
    assert text.startswith("# x \\# y \\<script\\>\n\n\\[a\\](b)\n")
    assert "| a\\|b | c d |" in text
    assert "- \\`e\\`" in text


@pytest.mark.parametrize("left", ["notes.txt", "sub", "thing.txt.bak"])
def test_a_model_with_something_else_next_to_it_is_not_replaced(model: Path, left: str) -> None:
    other = model / left
    other.mkdir() if left == "sub" else other.write_text("mine")
    before = sorted(path.name for path in model.iterdir())
    with pytest.raises(UsageError, match="would be lost"):
        save_folder(model, "thing", ABOUT, {"other.txt": "x"})
    assert sorted(path.name for path in model.iterdir()) == before


@pytest.mark.parametrize("card", ["{}", "no json", '{"gpuctl_model": 1, "files": {"../x.txt": {}}}', '{"name": "ace"}'])
def test_a_folder_with_a_card_of_another_program_is_not_replaced(tmp_path: Path, card: str) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / CARD).write_text(card)
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="not that of a model"):
        save_folder(folder, "thing", ABOUT, FILES)
    assert (folder / "thesis.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("step", range(1, 14))
def test_an_end_at_any_moment_leaves_a_whole_model(
    model: Path, monkeypatch: pytest.MonkeyPatch, step: int, can_exchange: bool
) -> None:
    """Killed before any of its calls to the file system, a save leaves the old model or the new one, whole."""
    calls = 0

    def counted(work: Any) -> Any:
        def call(*given: Any, **how: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls >= step:
                raise Killed
            return work(*given, **how)

        return call

    if not can_exchange:
        monkeypatch.setattr(card_module, "_exchange", lambda one, other: False)
    for name in ("rename", "unlink", "rmdir", "chmod"):
        monkeypatch.setattr(Path, name, counted(getattr(Path, name)))
    monkeypatch.setattr(card_module, "_write", counted(card_module._write))
    if can_exchange:
        monkeypatch.setattr(card_module, "_exchange", counted(card_module._exchange))
    with suppress(Killed):
        save_folder(model, "thing", ABOUT, {"other.txt": "x"})
    monkeypatch.undo()
    whole = [path for path in model.parent.iterdir() if (path / CARD).is_file() and _loads(path)]
    assert whole
    if can_exchange:
        assert model in whole


class Killed(BaseException):
    """The process ends here."""


def _loads(path: Path) -> bool:
    try:
        load_folder(path, "thing")
    except InputError:
        return False
    return True
