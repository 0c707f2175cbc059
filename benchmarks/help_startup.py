"""How long ``gpuctl --help`` takes, beside a bare Typer program with the same commands and options.

python benchmarks/help_startup.py [RUNS]   (40 unless given)

Both are started alike, turn by turn, so that other load on the machine hits both. The bare program has the same
commands, options and help texts, in one file with empty bodies; it is measured as Typer comes (help drawn by Rich) and
with the plain help that gpuctl uses. Exit code 1 where gpuctl takes more than 1.5 times the plain one (of the minima).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = 1.5
MADE_BY_TYPER = {"--help", "--install-completion", "--show-completion"}
PLAIN = "rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True"


def parameters(command: Any) -> str:
    """Return the source of a function's parameters that make the options and arguments of a Typer command."""
    lines = []
    for number, param in enumerate(p for p in command.params if not MADE_BY_TYPER & set(p.opts)):
        kind = "bool" if getattr(param, "is_flag", False) else "str"
        text = repr(getattr(param, "help", None) or "")
        if param.param_type_name == "argument":
            lines.append(f"    p{number}: Annotated[Optional[str], typer.Argument(help={text})] = None,")
        else:
            names = ", ".join(map(repr, (*param.opts, *param.secondary_opts)))
            default = "False" if kind == "bool" else "None"
            annotation = "bool" if kind == "bool" else "Optional[str]"
            lines.append(f"    p{number}: Annotated[{annotation}, typer.Option({names}, help={text})] = {default},")
    return "\n".join(lines)


def bare_program(settings: str) -> tuple[str, int, int]:
    """Return the source of the bare program, and how many commands and options gpuctl has."""
    import typer.main

    from gpuctl.cli.main import app

    group: Any = typer.main.get_command(app)
    parts = [
        "from typing import Annotated, Optional",
        "import typer",
        f"app = typer.Typer({settings})",
        f"@app.callback()\ndef top(\n{parameters(group)}\n) -> None:",
        f"    {group.help!r}",
    ]
    options = len(group.params)
    for name, command in group.commands.items():
        function = name.replace("-", "_")
        parts.append(f"@app.command({name!r})\ndef {function}(\n{parameters(command)}\n) -> None:")
        parts.append(f"    {command.help!r}")
        options += len(command.params)
    return "\n".join(parts) + "\n", len(group.commands), options


def seconds(module: str, call: str, folder: Path) -> float:
    """Return the wall time in seconds of one ``--help`` in a process of its own."""
    program = f"import sys; sys.argv[0] = 'gpuctl'; from {module} import {call}; {call}()"
    env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program, "--help"], env=env, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> int:
    """Measure, print a table, compare with the target."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, commands, options = bare_program(PLAIN)
        (folder / "bare_plain.py").write_text(source)
        (folder / "bare_rich.py").write_text(bare_program("")[0])
        programs = {
            "gpuctl": ("gpuctl.cli.start", "main"),
            "bare, plain help": ("bare_plain", "app"),
            "bare, Rich help": ("bare_rich", "app"),
        }
        times: dict[str, list[float]] = {label: [] for label in programs}
        for turn in range(runs + 1):
            for label, (module, call) in programs.items():
                taken = seconds(module, call, folder)
                if turn:  # the first turn compiles and fills the disk cache
                    times[label].append(taken * 1000)
    print(f"--help, {commands} commands with {options} options; {runs} runs each, in turn")
    for label, taken_ms in times.items():
        print(f"  {label:<18} min {min(taken_ms):6.1f} ms   median {statistics.median(taken_ms):6.1f} ms")
    plain = times["bare, plain help"]
    ratio = min(times["gpuctl"]) / min(plain)
    median_ratio = statistics.median(times["gpuctl"]) / statistics.median(plain)
    print(f"  ratio to the one with plain help: min {ratio:.2f}, median {median_ratio:.2f} (target <= {TARGET})")
    return int(ratio > TARGET)


if __name__ == "__main__":
    sys.exit(main())
