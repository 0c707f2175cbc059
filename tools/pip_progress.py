"""Runs pip and says in one line how far it is, in place of a screenful or nothing.

python tools/pip_progress.py install ...   (the arguments of pip; exits with what pip exits with)

On a terminal the line is written over; elsewhere there is one line for each stage. What pip says is shown if it fails.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections import deque

KEPT = 30
"""Lines of pip's that are shown if it fails."""


def stage_of(line: str, found: int) -> tuple[str, str, int]:
    """What a line of pip's says: the stage, the words for it, and how many packages were found until then."""
    word, _, rest = line.strip().partition(" ")
    if word in {"Collecting", "Obtaining"}:
        return "finding packages", f"finding packages: {found + 1}, {rest.split(' (')[0]}", found + 1
    if word in {"Downloading", "Using"}:
        return "finding packages", f"finding packages: {found}, {line.strip()}", found
    if line.startswith(("Building wheels", "  Building wheel")):
        return "building", "building gpuctl", found
    if line.startswith("Installing collected packages"):
        count = line.count(",") + 1
        return "installing", f"installing {count} package{'s' if count > 1 else ''}", found
    return "", "", found


def main(arguments: list[str]) -> int:
    """Run pip with these arguments."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    terminal, start, found, before = sys.stderr.isatty(), time.monotonic(), 0, ""
    last_lines: deque[str] = deque(maxlen=KEPT)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as pip:
        for line in pip.stdout or ():
            last_lines.append(line)
            stage, words, found = stage_of(line, found)
            text = f"{time.monotonic() - start:4.0f} s  {words}"
            if stage and terminal:
                sys.stderr.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
                sys.stderr.flush()
            elif stage and stage != before:
                sys.stderr.write(f"{text}\n")
            before = stage or before
    if terminal and before:
        sys.stderr.write("\r\x1b[K")
    if pip.returncode:
        sys.stderr.write("".join(last_lines))
    else:
        sys.stderr.write(f"{time.monotonic() - start:4.0f} s  installed\n")
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
