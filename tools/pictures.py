"""Takes the two pictures of the README: the real command in a real terminal, and the real page it writes.

python tools/pictures.py [COMMAND ...]   (the command of `make demo` unless another is given)

Needs a Chromium. The terminal is a pseudo-terminal 112 columns wide; what the program writes there is turned into
HTML and drawn by the browser. Progress, which goes to standard error, is not part of the picture. The pictures go to
docs/images, or to the folder named by the environment variable IMAGES.
"""

from __future__ import annotations

import io
import os
import pty
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from fcntl import ioctl
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
IMAGES = Path(os.environ.get("IMAGES", ROOT / "docs" / "images"))
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
COLUMNS = 112
LINES = 46
"""A picture with more lines than this is cut; it ends in a line that says so."""

DEMO = "gpuctl analyze sample_data/philly"
DARK = ("282c34", "e06c75", "98c379", "e5c07b", "61afef", "c678dd", "56b6c2", "c8ccd4")
BRIGHT = ("5c6370", "f0828a", "acd78f", "f5d48f", "7fc3fa", "d692eb", "70cad6", "f0f2f6")
FRAME = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: transparent; display: inline-block; }}
pre {{ margin: 0; padding: 16px 20px; background: {background}; color: {foreground}; border-radius: 8px;
      font: 13px/1.35 "DejaVu Sans Mono", "Liberation Mono", monospace; display: inline-block; }}
</style><pre>{code}</pre>"""


def on_terminal(command: list[str]) -> str:
    """Return what a command writes to a terminal of `COLUMNS` columns, colours and all.

    Raises:
        subprocess.CalledProcessError: the command did not exit with 0.
    """
    parent_end, child_end = pty.openpty()
    ioctl(child_end, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        env.pop(name, None)
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdin=child_end, stdout=child_end, stderr=subprocess.DEVNULL
    ) as process:
        os.close(child_end)
        chunks = []
        while chunk := read_some(parent_end):
            chunks.append(chunk)
    os.close(parent_end)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return b"".join(chunks).decode().replace("\r\n", "\n")


def read_some(terminal: int) -> bytes:
    """Return the next bytes; none once the last process has closed the terminal (Linux says so with EIO)."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def theme() -> TerminalTheme:
    """Return the sixteen colours of the terminal, on a dark ground."""
    dark, bright = ([tuple(bytes.fromhex(color)) for color in row] for row in (DARK, BRIGHT))
    return TerminalTheme((22, 24, 29), (214, 218, 226), dark, bright)  # type: ignore[arg-type]  # each has three bytes


def as_html(command: str, output: str) -> str:
    """Return a page that shows the prompt, the command and its first `LINES` lines of output."""
    lines = output.rstrip("\n").split("\n")
    if len(lines) > LINES:
        lines = [*lines[:LINES], f"\x1b[2m… and {len(lines) - LINES} more lines\x1b[0m"]
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, color_system="truecolor")
    prompt = Text.assemble(("$ ", "bold green"), command.replace(" --", " \\\n    --"))
    console.print(prompt, soft_wrap=True)
    console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)
    return console.export_html(theme=theme(), inline_styles=True, code_format=FRAME)


def main() -> None:
    """Run the command, and take both pictures."""
    command = " ".join(sys.argv[1:]) or DEMO
    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_path is None:
        sys.exit("no Chromium on this machine: apt-get install chromium")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        terminal_file = Path(folder) / "terminal.html"
        terminal_file.write_text(as_html(command, on_terminal(shlex.split(command))), "utf-8")
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(terminal_file.as_uri())
        page.locator("pre").screenshot(path=IMAGES / "terminal.png", omit_background=True)
        if not sys.argv[1:]:
            on_terminal([*shlex.split(DEMO), "--html", str(page_file)])
            page.set_viewport_size({"width": 1280, "height": 1400})
            page.goto(page_file.as_uri())
            page.screenshot(path=IMAGES / "report.png")
        browser.close()
    print(*sorted(IMAGES.glob("*.png")), sep="\n")


if __name__ == "__main__":
    main()
