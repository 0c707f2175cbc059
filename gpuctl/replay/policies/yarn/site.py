"""Hadoop's configuration files: properties, amounts of resources, and file lookup.

Names of resources are those of Hadoop: ``memory-mb`` (also ``memory``), ``vcores``, ``yarn.io/gpu`` (also ``gpu``).
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.parsers import expat

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.file_io import read_whole
from gpuctl.core.path_checks import is_file, is_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

MOST_BYTES = 32 << 20
"""Most bytes of a configuration file."""

MOST_DEPTH = 64

_RESOURCES = {"memory": 0, "memory-mb": 0, "vcores": 1, "yarn.io/gpu": 2, "gpu": 2}
_UNITS = {
    "": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15,
    "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40, "pi": 2.0**50,
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A property of a file.

    Attributes:
        name: of the property.
        text: its value, without blanks around it.
        path: the file.
        line: where its value begins, from 1.
    """

    name: str
    text: str
    path: str
    line: int

    def wrong(self, expected: str) -> InputError:
        """The error for an invalid value."""
        return InputError(
            f"{self.name} is {self.text!r}: expected {expected}",
            path=self.path,
            line=self.line,
            hint="correct the file",
        )

    def number(self, least: float = -math.inf, most: float = math.inf) -> float:
        """Its value as a number within bounds.

        Raises:
            InputError: it is not a number within bounds.
        """
        try:
            value = float(self.text.rstrip("f"))
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            bounds = f" from {least:g} to {most:g}" if math.isfinite(least) or math.isfinite(most) else ""
            raise self.wrong(f"a number{bounds}")
        return value

    def truth(self) -> bool:
        """Its value as true or false.

        Raises:
            InputError: it is neither.
        """
        word = self.text.lower()
        if word not in {"true", "false"}:
            raise self.wrong("true or false")
        return word == "true"


def walk(
    path: str,
    begin: Callable[[str, Mapping[str, str], int], Any],
    end: Callable[[str, str, int], Any],
) -> None:
    """Read an XML file without a document type, and without anything from outside it.

    Args:
        path: the file.
        begin: called with each element's name, attributes and line.
        end: called with each element's name, the text directly in it (without blanks around it) and the line of its
            start.

    Raises:
        InputError: it cannot be read, is not XML, declares a document type or entities, or is nested too deeply.
    """
    data = read_whole(Path(path), most=MOST_BYTES)
    parser = expat.ParserCreate()
    open_elements: list[tuple[list[str], int]] = []

    def refuse(*_: Any) -> None:
        raise InputError(
            "declares a document type (DOCTYPE), which is not read",
            path=path,
            line=parser.CurrentLineNumber,
            hint="write the file without it; entities other than those of XML itself are not resolved",
        )

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(open_elements) >= MOST_DEPTH:
            raise InputError(f"has more than {MOST_DEPTH} levels", path=path, line=parser.CurrentLineNumber)
        open_elements.append(([], parser.CurrentLineNumber))
        begin(name, attributes, parser.CurrentLineNumber)

    def text(some: str) -> None:
        if open_elements:
            open_elements[-1][0].append(some)

    def stop(name: str) -> None:
        parts, line = open_elements.pop()
        end(name, "".join(parts).strip(), line)

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, stop, text
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InputError(f"is not XML: {expat.errors.messages[error.code]}", path=path, line=error.lineno) from error
    except (ValueError, LookupError) as error:
        raise InputError(f"is not XML: {error}", path=path) from error


def root_of(path: str) -> str:
    """The name of a file's outermost element, as ``configuration`` or ``allocations``.

    Raises:
        InputError: as `walk` does.
    """
    names: list[str] = []
    walk(path, lambda name, _attributes, _line: names.append(name) if not names else None, lambda *_: None)
    return names[0]


def properties(path: str) -> dict[str, Setting]:
    """The properties of a ``<configuration>`` file; the last one of a name counts.

    Raises:
        InputError: as `walk` does, or it is not such a file, or a property has no name.
    """
    found: dict[str, Setting] = {}
    names: list[str] = []
    part: dict[str, tuple[str, int]] = {}

    def begin(name: str, _attributes: Mapping[str, str], line: int) -> None:
        if not names and name != "configuration":
            raise InputError(f"its outermost element is <{name}>, expected <configuration>", path=path, line=line)
        names.append(name)
        if name == "property":
            part.clear()

    def end(name: str, text: str, line: int) -> None:
        if name in {"name", "value"}:
            part[name] = (text, line)
        elif name == "property":
            if not part.get("name", ("", 0))[0]:
                raise InputError("a <property> without a <name>", path=path, line=line)
            value, at = part.get("value", ("", line))
            found[part["name"][0]] = Setting(part["name"][0], value, path, at)

    walk(path, begin, end)
    return found


def conf_files(conf: str, expected: tuple[str, ...]) -> list[str]:
    """The files of a parameter ``conf``: files and directories, separated by colons.

    Args:
        conf: the parameter.
        expected: names of the files searched in a directory, in this order; all that exist are used.

    Raises:
        UsageError: there is no such file, or none of the expected ones in a directory.
    """
    found = []
    for part in filter(None, conf.split(os.pathsep)):
        path = Path(part)
        if is_folder(path):
            there = [str(path / name) for name in expected if (path / name).is_file()]
            if not there:
                raise UsageError(f"conf={part}: a directory without any of {', '.join(expected)}")
            found += there
        elif is_file(path):
            found.append(str(path))
        else:
            raise UsageError(f"conf={part[:200]}: no such file or directory")
    return found


def amount(text: str, resource: int) -> float:
    """An amount as ``10240``, ``10Gi`` or ``10g``: MB of memory (resource 0), else a number.

    Units are those of Hadoop's resource types, upper or lower case: k, M, G, T, P of 1000, Ki, Mi, Gi, Ti, Pi of 1024;
    memory without one is in MB (2^20 bytes).

    Raises:
        ValueError: it is not an amount.
    """
    word = text.strip().lower()
    digits = word.rstrip("kmgtpi")
    unit = word[len(digits) :]
    value = float(digits)
    if unit not in _UNITS or not 0 <= value < 1e18:
        raise ValueError(text)
    if resource == 0:
        return value * _UNITS[unit] / 2.0**20 if unit else value
    return value * _UNITS[unit]


def absolute(setting: Setting) -> dict[int, float]:
    """An absolute amount of resources, ``[memory=10Gi,vcores=8,yarn.io/gpu=4]``: by number (0 MB, 1 vcores, 2 GPUs).

    Resources of other names are left out.

    Raises:
        InputError: it is not of this form.
    """
    text = setting.text
    expected = "[memory=10240,vcores=8,yarn.io/gpu=4]"
    if not (text.startswith("[") and text.endswith("]")):
        raise setting.wrong(expected)
    found = {}
    for part in filter(None, (p.strip() for p in text[1:-1].split(","))):
        name, equals, value = part.partition("=")
        number = _RESOURCES.get(name.strip().lower())
        try:
            if number is not None:
                found[number] = amount(value, number)
            elif not equals:
                raise ValueError(part)
        except ValueError:
            raise setting.wrong(expected) from None
    return found
