"""Run the programs of the fresh corpus and keep what they print: `python tests/labs/failures/fresh.py [NAME ...]`.

Each runs in an empty folder `/tmp/jobs/NUMBER`, with loopback as its only network, stdout and stderr in one file, for
at most two minutes. A program that ends otherwise than its truth says (a success that fails, or the other way round) is
reported and not kept. TORCH_PYTHON names a Python that has torch and gymnasium.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fresh_programs import PROGRAMS

ROOT = Path(__file__).parents[3]
CORPUS = ROOT / "tests" / "fixtures" / "failures"
MANIFEST = CORPUS / "manifest.jsonl"
PYTHON = Path("/tmp/gpuctl-failures-venv/bin/python")
TORCH = Path(os.environ.get("TORCH_PYTHON", PYTHON))
RUN = {
    "py": ("{name}.py", "python {file}"),
    "torch": ("{name}.py", "python {file}"),
    "sh": ("{name}.sh", "bash {file}"),
    "c": ("{name}.c", "cc -w -o job {file} && ./job"),
    "cpp": ("{name}.cpp", "g++ -w -o job {file} && ./job"),
    "asan": ("{name}.cpp", "g++ -w -g -fsanitize=address -o job {file} && ./job"),
    "rs": ("{name}.rs", "rustc -A warnings -o job {file} && ./job"),
    "go": ("{name}.go", "go run {file}"),
    "java": ("Main.java", "javac Main.java && java Main"),
    "js": ("{name}.js", "node {file}"),
    "pl": ("{name}.pl", "perl {file}"),
    "lua": ("{name}.lua", "lua5.4 {file}"),
    "rb": ("{name}.rb", "ruby {file}"),
    "php": ("{name}.php", "php -d display_errors=stderr -d log_errors=0 {file}"),
    "ml": ("{name}.ml", "ocamlopt -o job {file} && ./job"),
    "R": ("{name}.R", "Rscript {file}"),
    "awk": ("{name}.awk", "gawk -f {file}"),
}
_NAMES = ("train", "main", "run", "job", "step")


def run(name: str, kind: str, text: str) -> tuple[bytes, int]:
    """Run one program: what it printed, and how its shell ended (128 + signal for a signal)."""
    number = int(hashlib.sha256(name.encode()).hexdigest()[:6], 16)
    folder = Path(f"/tmp/jobs/{number}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pattern, command = RUN[kind]
    file = pattern.format(name=_NAMES[number % len(_NAMES)])
    (folder / file).write_text(text)
    path = f"{(TORCH if kind == 'torch' else PYTHON).parent}:{os.environ['PATH']}"
    home = Path.home()
    environment = {
        "PATH": path,
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "GOCACHE": "/tmp/gocache",
        "OMP_NUM_THREADS": "1",
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(home / ".rustup")),
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(home / ".cargo")),
    }
    if number % 2:
        environment["PYTHONUNBUFFERED"] = "1"
    with (folder / "out.txt").open("wb") as out:
        shell = f"ip link set lo up 2>/dev/null; {command.format(file=file)}"
        done = subprocess.run(
            ["unshare", "-n", "bash", "-c", shell],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
        )
    code = done.returncode
    return (folder / "out.txt").read_bytes(), 128 - code if code < 0 else code


def main() -> None:
    """Run what is named, or all that has no recording yet."""
    rows = {row["case"]: row for row in map(json.loads, MANIFEST.read_text().splitlines())}
    wanted = sys.argv[1:]
    for name, kind, truth, others, text in PROGRAMS:
        case = f"fresh_{name}"
        if (wanted and name not in wanted) or (not wanted and case in rows):
            continue
        printed, code = run(name, kind, text)
        if (code == 0) != (truth is None):
            print(  # noqa: T201 - what its user has to mend
                f"{name}: ended with {code}, its truth is {truth}: not kept\n{printed[-600:].decode(errors='replace')}"
            )
            continue
        folder = CORPUS / "fresh" / case
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for path, face in (
            (PYTHON.parents[1], "python"),
            (TORCH.parents[1], "torch"),
            (Path(sys.base_prefix), "python"),
        ):
            printed = printed.replace(str(path).encode(), f"/opt/{face}".encode())
        (folder / "output.txt").write_bytes(printed)
        signal = code - 128 if 128 < code < 160 else None
        rows[case] = {
            "case": case, "program": f"fresh:{name}", "split": "fresh", "stack": kind, "reason": truth,
            "acceptable": list(others), "exit_code": None if signal else code, "exit_signal": signal,
            "state": "completed" if code == 0 else "failed", "command": RUN[kind][1].split(" ")[0],
            "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "versions": {},
        }  # fmt: skip
    MANIFEST.write_text("".join(json.dumps(rows[case]) + "\n" for case in sorted(rows)))


if __name__ == "__main__":
    main()
