"""Writes docs/reference/library.md from the docstrings of the public interface.

python tools/library_page.py          write it
python tools/library_page.py --check  exit 1 where the document says something else
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import gpuctl
from gpuctl import errors
from gpuctl.library import analysis, figures, ingests, models, reports

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "reference" / "library.md"
HEAD = """# The Python interface

Everything that `import gpuctl` offers, from its docstrings; [notebooks](../how-to/notebooks.md) shows how the parts go
together. The examples run as they stand in a folder that has `sample_data/`. Names keep their meaning between versions;
new ones may be added. `gpuctl.plugins` is described in [write-a-policy](../how-to/write-a-policy.md) and
[add-a-format](../how-to/add-a-format.md).

"""
RETURNED = {
    "IngestReport": ingests.IngestReport,
    "JobExplanation": analysis.JobExplanation,
    "FailureVerdict": analysis.FailureVerdict,
    "Model": models.Model,
    "Report": reports.Report,
    "Figure": figures.Figure,
}
"""Classes of what the functions return, by name."""
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Example):$", re.MULTILINE)
_ENTRY = re.compile(r"^(\S[^:]*): (.*)$")


def sections(text: str) -> dict[str, str]:
    """Return the parts of a docstring by heading; the text before the first is called Text."""
    name, *rest = _SECTION.split(inspect.cleandoc(text))
    found = {"Text": name.strip()}
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        found[heading] = textwrap.dedent(body.strip("\n")).rstrip()
    return found


def entries(text: str) -> Iterator[str]:
    """Yield the entries of a list in a docstring as a list in Markdown."""
    for block in re.split(r"\n(?=\S)", text):
        line = " ".join(each.strip() for each in block.splitlines())
        found = _ENTRY.match(line)
        yield f"- `{found[1]}`: {marked(found[2])}" if found else f"- {marked(line)}"


def marked(text: str) -> str:
    """Return text of a docstring as Markdown."""
    return re.sub(r"`{1,2}([^`]+)`{1,2}", r"`\1`", text)


def described(text: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring."""
    parts = sections(text)
    yield marked(parts["Text"])
    for heading in ("Args", "Attributes", "Returns", "Raises"):
        if heading not in parts:
            continue
        if heading == "Returns":
            yield f"Returns {marked(' '.join(parts[heading].split()))}"
        else:
            yield {"Args": "Arguments:", "Attributes": "Attributes:", "Raises": "Raises:"}[heading]
            yield "\n".join(entries(parts[heading]))
    if "Example" in parts:
        yield f"```pycon\n{parts['Example']}\n```"


def signature(function: object) -> str:
    """Return the arguments of a function without types: these are in the stub and in `help`."""
    found = inspect.signature(function)  # type: ignore[arg-type]
    given = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()
             if each.name != "self"]  # fmt: skip
    return str(found.replace(parameters=given, return_annotation=inspect.Signature.empty))


def of_class(name: str, kind: type) -> Iterator[str]:
    """Yield the paragraphs on a class and its public methods."""
    yield f"## {name}" if name in RETURNED else f"## gpuctl.{name}"
    yield from described(str(kind.__doc__))
    for method, value in vars(kind).items():
        if method.startswith("_") or not (inspect.isfunction(value) or isinstance(value, property)):
            continue
        arguments = "" if isinstance(value, property) else signature(value)
        yield f"### {name}.{method}"
        yield f"`{method}{arguments}`"
        yield from described(str(value.__doc__))


def page() -> str:
    """Return the document."""
    parts: list[str] = []
    for name in sorted(gpuctl.__all__, key=lambda name: (name[0].isupper(), name)):
        found = getattr(gpuctl, name)
        if inspect.isclass(found):
            parts += of_class(name, found)
        else:
            parts += [f"## gpuctl.{name}", f"`gpuctl.{name}{signature(found)}`", *described(str(found.__doc__))]
    for name, kind in RETURNED.items():
        parts += of_class(name, kind)
    parts += ["## gpuctl.errors", *described(str(errors.__doc__))]
    parts += ["\n".join(f"- `{name}`: {str(getattr(errors, name).__doc__).splitlines()[0]}" for name in errors.__all__)]
    return HEAD + "\n\n".join(parts) + "\n"


def main() -> None:
    """Write the document, or check it."""
    if "--check" not in sys.argv[1:]:
        DOCUMENT.write_text(page(), "utf-8")
    elif DOCUMENT.read_text("utf-8") != page():
        sys.exit(f"{DOCUMENT}: not what the docstrings of gpuctl/library say; run: make docs")


if __name__ == "__main__":
    main()
