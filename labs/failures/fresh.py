"""Run the programs of a corpus and keep what they print: `python labs/failures/fresh.py [--gpu|--tools] [NAME ...]`.

The corpus is `fresh`, with `--gpu` the one that needs a GPU, or with `--tools` the one that authors of signatures may
read. Each program runs in an empty folder, with loopback as
its only network, stdout and stderr in one file, for at most two minutes. A program that ends otherwise
than its truth says (a success that fails, or the other way round) is reported and not kept. TORCH_PYTHON names a Python
that has torch and gymnasium; on the machine with the GPU, what else the programs import.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import fresh_programs
import gpu_programs
import other_tool_programs
import tool_programs

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "fixtures" / "failures"
MANIFEST = CORPUS / "manifest.jsonl"
PYTHON = Path("/tmp/gpuctl-failures-venv/bin/python")
TORCH = Path(os.environ.get("TORCH_PYTHON", PYTHON))
RUN = {
    "py": ("{name}.py", "python {file}"),
    "torch": ("{name}.py", "python {file}"),
    "sh": ("{name}.sh", "bash {file}"),
    "cu": ("{name}.cu", "nvcc -w -o job {file} && ./job"),
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
    "erl": ("{name}.erl", "escript {file}"),
    "exs": ("{name}.exs", "elixir {file}"),
    "nim": ("{name}.nim", "nim c --hints:off --nimcache:nim -o:job {file} && ./job"),
    "tcl": ("{name}.tcl", "tclsh {file}"),
    "lisp": ("{name}.lisp", "sbcl --script {file}"),
    "prolog": ("{name}.pl", "swipl {file}"),
    "pas": ("{name}.pas", "fpc -v0ew -l- -o./job {file} && ./job"),
    "cob": ("{name}.cob", "cobc -x -o job {file} && ./job"),
    "rkt": ("{name}.rkt", "racket {file}"),
    "guile": ("{name}.scm", "guile --no-auto-compile {file}"),
    "csi": ("{name}.scm", "csi -s {file}"),
    "groovy": ("{name}.groovy", "JAVA_HOME=/usr/lib/jvm/java-17-openjdk-amd64 groovy {file}"),
    "clisp": ("{name}.lisp", "clisp -q {file}"),
    "f90": ("{name}.f90", "gfortran -w -o job {file} && ./job"),
}
_CORPORA = {
    "--gpu": ("gpu", gpu_programs.PROGRAMS),
    "--tools": ("tools", tool_programs.PROGRAMS + other_tool_programs.PROGRAMS),
}
_NAMES = ("train", "main", "run", "job", "step")
_WORKERS = 6
# Where there is no `ip`: the flags of `lo` with IFF_UP (SIOCSIFFLAGS).
_LOOPBACK = (
    "ip link set lo up 2>/dev/null || python3 -c 'import fcntl, socket, struct; "
    'fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 1))\''
)
_KEPT = ("LD_LIBRARY_PATH", "CUDA_HOME")
_PACKAGES = ("torch", "jax", "cupy-cuda13x", "numba", "numba-cuda", "triton", "nvidia-nccl-cu13", "transformers")


def run(name: str, kind: str, text: str) -> tuple[bytes, int]:
    """Run one program: what it printed, and how its shell ended (128 + signal for a signal; 124 after two minutes)."""
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
        **{key: os.environ[key] for key in _KEPT if key in os.environ},
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(home / ".rustup")),
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(home / ".cargo")),
    }
    if name not in gpu_programs.ALONE:
        environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    if number % 2:
        environment["PYTHONUNBUFFERED"] = "1"
    with (folder / "out.txt").open("wb") as out:
        shell = f"{_LOOPBACK}; {command.format(file=file)}"
        alone = ["timeout", "-k", "5", "120", "unshare", "-n", "bash", "-c", shell]
        done = subprocess.run(
            alone,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    code = done.returncode
    return (folder / "out.txt").read_bytes(), 128 - code if code < 0 else code


def keep(split: str, name: str, kind: str, printed: bytes, code: int) -> dict[str, object]:
    """Write what a program printed; its line of the manifest, without the truth."""
    folder = CORPUS / split / f"{split}_{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    faces = ((PYTHON.parents[1], "python"), (TORCH.parents[1], "torch"), (Path(sys.base_prefix), "python"))
    for path, face in faces:
        printed = printed.replace(str(path).encode(), f"/opt/{face}".encode())
    (folder / "output.txt").write_bytes(printed)
    signal = code - 128 if 128 < code < 160 else None
    return {
        "exit_code": None if signal else code, "exit_signal": signal, "state": "completed" if code == 0 else "failed",
        "command": RUN[kind][1].split(" ")[0], "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }  # fmt: skip


def versions() -> dict[str, str]:
    """What the programs for the GPU ran with."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu, driver = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().split(", ")
    return {**found, "gpu": gpu, "driver": driver}


def main() -> None:
    """Run what is named, or all that has no recording yet."""
    split, corpus = next(
        (found for option, found in _CORPORA.items() if option in sys.argv), ("fresh", fresh_programs.PROGRAMS)
    )
    rows = {row["case"]: row for row in map(json.loads, MANIFEST.read_text().splitlines())}
    named = [word for word in sys.argv[1:] if word not in _CORPORA]
    wanted = [one for one in corpus if (one[0] in named if named else f"{split}_{one[0]}" not in rows)]
    made = versions() if split == "gpu" else {}
    alone = [one for one in wanted if one[0] in gpu_programs.ALONE]
    with ThreadPoolExecutor(_WORKERS if split == "gpu" else 1) as pool:
        parallel = [one for one in wanted if one not in alone]
        results = list(zip(parallel, pool.map(lambda one: run(one[0], one[1], one[4]), parallel), strict=True))
    results += [(one, run(one[0], one[1], one[4])) for one in alone]
    for (name, kind, truth, others, _), (printed, code) in results:
        if code == 124 or (code == 0) != (truth is None):
            print(  # noqa: T201 - what its user has to mend
                f"{name}: ended with {code}, its truth is {truth}: not kept\n{printed[-600:].decode(errors='replace')}"
            )
            continue
        case = f"{split}_{name}"
        rows[case] = {
            "case": case, "program": f"{split}:{name}", "split": split, "stack": kind, "reason": truth,
            "acceptable": list(others), **keep(split, name, kind, printed, code), "versions": made,
        }  # fmt: skip
    MANIFEST.write_text("".join(json.dumps(rows[case]) + "\n" for case in sorted(rows)))


if __name__ == "__main__":
    main()
