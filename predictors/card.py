"""A saved model: a folder of text, JSON and plain arrays, with a card that describes it.

It holds no code, and loading it runs none: a folder may be untrusted. ``card.json`` names every file with its size and
SHA-256; it cannot prove who made the folder, only that nothing was truncated, swapped or changed by accident. Readers
of the files must therefore still check their contents.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import read_whole
from gpuctl.core.numbers import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

SCHEMA = 1
"""Of card.json and the files beside it; raised when an older gpuctl could no longer read them."""

CARD, PAGE = "card.json", "card.md"
MOST_BYTES = 512 * 2**20
"""Of one file."""
MOST_CARD_BYTES = 4 * 2**20
MOST_FILES = 64

_NAME = re.compile(r"[a-z0-9_]{1,60}\.(txt|json|npy)")
_NPY = b"\x93NUMPY\x01\x00"
_NPY_HEAD = re.compile(
    rb"\{'descr': '(?P<dtype><[iu][248]|<f[48]|[|][iu]1)', 'fortran_order': False, "
    rb"'shape': \((?P<shape>[0-9]{1,12},|[0-9]{1,12}, "
    rb"[0-9]{1,12})\), \} *\n"
)
_MOST_DIGITS = 20
_DIGEST = re.compile(r"[0-9a-f]{64}")
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_ELSEWHERE = "name another place"
_HINT = "name a folder that gpuctl train has written, whole"


@dataclass(frozen=True)
class Folder:
    """A saved model whose files match the card; their contents are not checked yet.

    Attributes:
        path: of the folder.
        card: the description passed to `save_folder`, and ``kind``, ``gpuctl``, ``files``.
        files: text of ``.txt``, value of ``.json``, array of ``.npy``, by name.
    """

    path: Path
    card: dict[str, Any]
    files: dict[str, Any]

    def text(self, name: str) -> str:
        """Return the text of a file.

        Raises:
            InputError: it is missing.
        """
        found: str = self._file(name)
        return found

    def json(self, name: str) -> Any:
        """Return the value of a JSON file.

        Raises:
            InputError: it is missing.
        """
        return self._file(name)

    def array(self, name: str, kind: str, dimensions: int = 1) -> NDArray[Any]:
        """Return the numbers of a file.

        Args:
            name: of the file.
            kind: type of its numbers as NumPy names it: ``float64``, ``int64`` …
            dimensions: number of dimensions.

        Raises:
            InputError: it is missing, or has another type or dimensions.
        """
        found = self._file(name)
        if str(found.dtype) != kind or found.ndim != dimensions:
            raise InputError(
                f"found {found.dtype} in {found.ndim} dimensions, expected {kind} in {dimensions}",
                path=str(self.path / name),
                hint=_HINT,
            )
        array: NDArray[Any] = found
        return array

    def _file(self, name: str) -> Any:
        if name not in self.files:
            raise InputError(f"names no file {name}", path=str(self.path / CARD), hint=_HINT)
        return self.files[name]


def check_place(path: Path) -> None:
    """Check that a model can be saved there, before any work is done.

    Raises:
        UsageError: something else is there, or it cannot be created.
    """
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise UsageError(f"{path}: a file or a link, expected a folder for a model", hint="name another place")
    if path.is_dir():
        _check_replaceable(path)
    above = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise UsageError(f"{path}: {above} is not writable", hint="name another place")


def _check_replaceable(path: Path) -> None:
    """Check that a folder is empty, or holds a model and nothing else: all of its content will be deleted.

    Raises:
        UsageError: it holds something else.
    """
    try:
        there = sorted(file.name for file in path.iterdir())
        if not there:
            return
        if CARD not in there:
            raise UsageError(f"{path}: a folder with other files in it, not a model", hint=_ELSEWHERE)
        expected = {CARD, PAGE, *read_card(path)["files"]}
        strange = [name for name in there if name not in expected or not _is_file(path / name)]
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", hint=_ELSEWHERE) from error
    except InputError as error:
        raise UsageError(f"{path}: its {CARD} is not that of a model: {error.message}", hint=_ELSEWHERE) from error
    if strange:
        raise UsageError(
            f"{path}: a model with {len(strange)} other files or folders in it ({strange[0]!r} …), which would be lost",
            hint=_ELSEWHERE,
        )


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def save_folder(path: Path, kind: str, about: Mapping[str, Any], files: Mapping[str, Any]) -> None:
    """Save a model; an existing model is replaced, at the end and as a whole.

    The same model gives the same bytes: neither time nor place of saving is recorded.

    Args:
        path: of the folder.
        kind: of model: ``runtime``, ``overhead`` …
        about: entries of the card: ``title`` and ``what`` (sentences), and more as text, numbers, lists, dicts
            (``{name: value}``) and lists of dicts with the same keys (tables).
        files: by name: a str for ``.txt``, a value for ``.json``, a NumPy array of numbers for ``.npy``.

    Raises:
        UsageError: something else is there, or it is not writable.
    """
    check_place(path)
    contents = {name: _encoded(name, value) for name, value in sorted(files.items())}
    listed = {name: {"bytes": len(data), "sha256": _sha256(data)} for name, data in contents.items()}
    card = {"gpuctl_model": SCHEMA, "kind": kind, **_versions(), **about, "files": listed}
    contents[CARD] = _dump(card)
    contents[PAGE] = page(card).encode()
    draft: Path | None = None
    try:
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.absolute().parent))
        draft.chmod(0o777 & ~_umask())
        for name, data in contents.items():
            _write(draft / name, data)
        check_place(path)
        _put(draft, path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}", hint=_ELSEWHERE) from error
    finally:
        if draft is not None:
            _remove_model(draft)


def _put(draft: Path, path: Path) -> None:
    """Replace a folder by another one; at no time is there none."""
    if not path.exists():
        draft.rename(path)
    elif not _exchange(draft, path):
        # a kill between these leaves the old one, whole, next to its place
        aside = draft.with_suffix(".old")
        path.rename(aside)
        draft.rename(path)
        aside.rename(draft)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False if this system or file system does not support it."""
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    done: int = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return done == 0


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def _remove_model(path: Path) -> None:
    """Remove a model's files and its folder; other files in it stay, and then the folder stays as well."""
    with suppress(OSError):
        for file in path.iterdir():
            if file.name in {CARD, PAGE} or _NAME.fullmatch(file.name):
                file.unlink()
        path.rmdir()


def load_folder(path: Path, kind: str) -> Folder:
    """Load a saved model, and check that it is complete and of this kind.

    Args:
        path: of the folder.
        kind: expected kind of model.

    Raises:
        InputError: there is no model, or one of another kind or version, or a file is missing, truncated, changed, or
            has content that does not match its name. The message names the file, its fault and what was expected.
    """
    card = read_card(path)
    found = str(card.get("kind"))[:40]
    if card.get("kind") != kind:
        raise InputError(f"found a model of kind {found!r}, expected {kind!r}", path=str(path / CARD), hint=_HINT)
    files: dict[str, Any] = {}
    for name, entry in card["files"].items():
        file = path / name
        data = _bytes(file, entry["bytes"])
        if len(data) != entry["bytes"]:
            raise InputError(
                f"is truncated: has {len(data):,} bytes, expected {entry['bytes']:,}", path=str(file), hint=_HINT
            )
        if _sha256(data) != entry["sha256"]:
            raise InputError(f"was changed: its SHA-256 is not that of {CARD}", path=str(file), hint=_HINT)
        files[name] = _decoded(data, file)
    return Folder(path, card, files)


def read_card(path: Path) -> dict[str, Any]:
    """Read the card of a saved model of any kind, without its files.

    Args:
        path: of the folder.

    Raises:
        InputError: there is no model, or one of another version, or the card cannot be read.
    """
    card_path = path / CARD
    if not path.is_dir():
        raise InputError("expected the folder of a model", path=str(path), hint=_HINT)
    card: dict[str, Any] = _json(_bytes(card_path, MOST_CARD_BYTES), card_path)
    _check_card(card, card_path)
    return card


def _check_card(card: Any, path: Path) -> None:
    def wrong(text: str) -> InputError:
        return InputError(text, path=str(path), hint=_HINT)

    if not isinstance(card, dict) or "gpuctl_model" not in card:
        raise wrong("is not a model card: expected an object with gpuctl_model")
    if card["gpuctl_model"] != SCHEMA or isinstance(card["gpuctl_model"], bool):
        found = str(card["gpuctl_model"])[:20]
        raise InputError(
            f"is version {found}, this gpuctl reads version {SCHEMA}",
            path=str(path),
            hint="train the model again, or use the gpuctl that it was made with",
        )
    files = card.get("files")
    if not isinstance(files, dict) or not 0 < len(files) <= MOST_FILES:
        raise wrong(f"files: expected an object with 1 to {MOST_FILES} names")
    for name, entry in files.items():
        if not _NAME.fullmatch(name) or name == CARD:
            raise wrong(f"files: {name[:60]!r} is not the name of a model file")
        size = entry.get("bytes") if isinstance(entry, dict) else None
        digest = entry.get("sha256") if isinstance(entry, dict) else None
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MOST_BYTES:
            raise wrong(f"files: bytes of {name}: expected 0 to {MOST_BYTES:,}")
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise wrong(f"files: sha256 of {name}: expected 64 hexadecimal digits")


def _versions() -> dict[str, Any]:
    from importlib.metadata import version

    from gpuctl import __version__

    return {"gpuctl": __version__, "made_with": {name: version(name) for name in ("lightgbm", "numpy", "polars")}}


def _encoded(name: str, value: Any) -> bytes:
    if not _NAME.fullmatch(name) or name == CARD:
        raise ValueError(f"{name!r} is not the name of a model file")
    if name.endswith(".txt"):
        data: bytes = value.encode()
        return data
    if name.endswith(".json"):
        return _dump(value)
    import numpy as np

    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(value), version=(1, 0), allow_pickle=False)
    return out.getvalue()


def _decoded(data: bytes, path: Path) -> Any:
    if path.suffix == ".json":
        return _json(data, path)
    if path.suffix == ".npy":
        return _array(data, path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text: byte {error.start:,}", path=str(path), hint=_HINT) from None


def _array(data: bytes, path: Path) -> NDArray[Any]:
    """Return the numbers of a ``.npy`` file as NumPy writes it; its size must match its header.

    NumPy's own reader of headers evaluates them as Python literals, and fails on some invalid ones.
    """
    import numpy as np

    start = len(_NPY) + 2
    size = int.from_bytes(data[len(_NPY) : start], "little")
    head = _NPY_HEAD.fullmatch(data[start : start + size])
    if not data.startswith(_NPY) or len(data) < start + size or head is None:
        raise InputError("is not a NumPy array of plain numbers", path=str(path), hint=_HINT)
    dtype = np.dtype(head["dtype"].decode())
    shape = tuple(int(word) for word in head["shape"].split(b",") if word.strip())
    left = len(data) - start - size
    if math.prod(shape) * dtype.itemsize != left:
        raise InputError(
            f"found {left:,} bytes of numbers, expected {dtype} for the shape {shape}", path=str(path), hint=_HINT
        )
    return np.frombuffer(data, dtype, offset=start + size).reshape(shape)


def _bytes(path: Path, most: int) -> bytes:
    """Return the bytes of a file of a model; links are not followed."""
    return read_whole(path, most=most, follow=False, hint=_HINT)


def _json(data: bytes, path: Path) -> Any:
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse, parse_float=_finite, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        reason = getattr(error, "msg", None) or str(error)
        raise InputError(f"is not valid JSON: {reason[:200]}", path=str(path), line=line, hint=_HINT) from None


def _refuse(word: str) -> None:
    raise ValueError(f"{word[:40]} is not a number that a model can have")


def _finite(word: str) -> float:
    found = float(word)
    if not math.isfinite(found):
        _refuse(word)
    return found


def _whole(word: str) -> int:
    """Return an integer of 64 bits: a larger one fits neither an array nor a float."""
    if len(word) > _MOST_DIGITS or not -(2**63) <= (found := int(word)) < 2**63:
        _refuse(word)
    return found


def _dump(value: Any) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def page(card: Mapping[str, Any]) -> str:
    """Return the card as Markdown, for people."""
    lines = [f"# {_cell(card.get('title', 'A model'))}", "", _cell(card.get("what", "")), ""]
    for key, value in card.items():
        if key in {"title", "what", "gpuctl_model"}:
            continue
        lines += [f"## {key.replace('_', ' ').capitalize()}", "", *_shown(value), ""]
    return "\n".join(lines).rstrip() + "\n"


def _shown(value: Any) -> list[str]:
    if isinstance(value, dict):
        if all(isinstance(each, dict) for each in value.values()) and value:
            return _shown([{"": name, **each} for name, each in value.items()])
        return ["| | |", "|---|---|", *(f"| {_cell(name)} | {_cell(each)} |" for name, each in value.items())]
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        names = list(dict.fromkeys(name for each in value for name in each))
        head = [f"| {' | '.join(_cell(name) for name in names)} |", f"|{'---|' * len(names)}"]
        return head + [f"| {' | '.join(_cell(each.get(name, '')) for name in names)} |" for each in value]
    if isinstance(value, list):
        return [f"- {_cell(each)}" for each in value]
    return [_cell(value)]


def _cell(value: Any) -> str:
    """Return a value as text of one line without Markdown markup."""
    if value is None:
        return ""
    if isinstance(value, float):
        return number(value)
    text = value if isinstance(value, str) else json.dumps(value)
    return re.sub(r"([\\`*_|<>\[\]#])", r"\\\1", " ".join(text.split()))
