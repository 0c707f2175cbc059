"""Writes what ``gpuctl --help`` and every command's ``--help`` print into docs/reference/cli.md.

python tools/help_pages.py          write them
python tools/help_pages.py --check  exit 1 where the document says something else
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "reference" / "cli.md"
AS_GPUCTL = "import sys; sys.argv[0] = 'gpuctl'; from gpuctl.cli.main import main; main()"
"""What the console script does, whether or not it is installed."""
START = "<!-- Help pages, written by `make docs`: do not edit below. -->"
END = "<!-- End of the help pages. -->"


def started(*words: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run gpuctl in a process of its own.

    Raises:
        subprocess.CalledProcessError: the program did not exit with 0.
    """
    return subprocess.run(
        [sys.executable, "-c", AS_GPUCTL, *words],
        env={**os.environ, **env, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )


def help_page(*command: str, run: Callable[..., subprocess.CompletedProcess[str]] = started) -> str:
    """Return what ``gpuctl COMMAND --help`` prints on a terminal 80 columns wide."""
    text = run(*command, "--help", env={"COLUMNS": "80", "NO_COLOR": "1"}).stdout
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def commands_in(page: str) -> list[str]:
    """Return the names of the commands that a help page lists, below its options."""
    if not re.search(r"^Usage: .* COMMAND \[ARGS\]", page, re.MULTILINE):
        return []
    _, _, listed = page.rpartition("Show this message and exit.\n")
    return re.findall(r"^  ([a-z][a-z-]*)", listed, re.MULTILINE)


def all_pages(*command: str, run: Callable[..., subprocess.CompletedProcess[str]] = started) -> dict[str, str]:
    """Return the help page of a command and of every command below it, by command line."""
    page = help_page(*command, run=run)
    pages = {" ".join(("gpuctl", *command)): page}
    for name in commands_in(page):
        pages |= all_pages(*command, name, run=run)
    return pages


def with_pages(document: str, pages: dict[str, str]) -> str:
    """Return the document with the part between the two markers written anew.

    Raises:
        ValueError: the markers are not there.
    """
    head, start, rest = document.partition(START)
    _, end, tail = rest.partition(END)
    if not start or not end:
        raise ValueError(f"{DOCUMENT}: must hold the lines {START!r} and {END!r}")
    body = "\n".join(f"### {line}\n\n```text\n{page}\n```\n" for line, page in pages.items())
    return f"{head}{START}\n\n{body}\n{END}{tail}"


def main() -> int:
    """Write the pages, or compare them."""
    now = DOCUMENT.read_text("utf-8")
    new = with_pages(now, all_pages())
    if "--check" in sys.argv[1:]:
        if now != new:
            print(f"{DOCUMENT.relative_to(ROOT)} does not say what --help says; run: make docs", file=sys.stderr)
        return int(now != new)
    DOCUMENT.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
