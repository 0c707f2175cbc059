"""Runs programs that really fail (and some that do not) and records what they print, with the true reason.

`record.py` records every case, `record.py NAME…` those whose program or case begins so; README.md tells the rest.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
FIXTURES = HERE.parents[1] / "tests" / "fixtures" / "failures"
MANIFEST = FIXTURES / "manifest.jsonl"
VENV = Path("/tmp/gpuctl-failures-venv")
ROOM = Path("/tmp/jobs")
SEED = "gpuctl issue 6"
HOST = "node017"
LARGEST = 100_000
HOME_PYTHON = sys.base_prefix.encode()  # the only path that tells of the machine that records
NAMES = ("train", "main", "run", "finetune", "experiment", "preprocess", "job", "pipeline")
OUTPUTS = ("stdout.txt", "stderr.txt", "output.txt")


@dataclass
class Case:
    """One run of a program; the head of the program's file says all but the split."""

    case: str
    program: str
    stack: str
    reason: str | None
    run: str
    exit: int | None = 1
    signal: int = 0
    state: str | None = None
    acceptable: list[str] = field(default_factory=list)
    note: str = ""
    layout: str = ""
    setup: str = ""
    mem_mb: int = 0
    tmpfs_mb: int = 0
    shm_mb: int = 0
    user: str = ""
    python: str = "venv"
    limit_s: int = 150
    env: dict[str, str] = field(default_factory=dict)
    slurm: bool = False
    after: str = ""
    must: str = ""
    packages: list[str] = field(default_factory=list)
    split: str = ""

    def digest(self, what: str = "") -> int:
        """The same number in every run for this case."""
        return int(hashlib.sha256(f"{SEED}:{what}:{self.case}".encode()).hexdigest()[:12], 16)


def parse(path: Path) -> tuple[list[Case], str]:
    """The cases that a program's head describes, and the program itself."""
    head, body = [], []
    for line in path.read_text().splitlines(keepends=True):
        mark = next((m for m in ("#: ", "//: ") if line.startswith(m)), None)
        (head.append(line.removeprefix(mark)) if mark else body.append(line))
    spec = tomllib.loads("".join(head))
    program = path.name.removesuffix(".txt")
    variants = spec.pop("case", [{}])
    stem = program.split(".")[0]
    cases = []
    for number, variant in enumerate(variants):
        merged: dict[str, Any] = {**spec, **variant}
        name = merged.pop("name", str(number + 1) if len(variants) > 1 else "")
        merged["reason"] = merged.get("reason") or None
        if merged["reason"] is None:
            merged.setdefault("exit", 0)
        if merged.get("signal"):
            merged["exit"] = None
        cases.append(Case(case=f"{stem}-{name}" if name else stem, program=program, **merged))
    return cases, "".join(body)


def load() -> list[Case]:
    """Every case, with its split."""
    cases: list[Case] = []
    for path in sorted(PROGRAMS.glob("*.txt")):
        cases += parse(path)[0]
    assign(cases)
    return cases


def assign(cases: list[Case]) -> None:
    """Puts a third of each reason's programs into the held-out part, by a hash; what is recorded stays where it is."""
    known = {row["program"]: row["split"] for row in recorded().values()}
    first: dict[str, str] = {}
    for case in cases:
        first.setdefault(case.program, case.reason or "success")
    by_reason: dict[str, list[str]] = {}
    for program, reason in first.items():
        by_reason.setdefault(reason, []).append(program)
    for reason, programs in by_reason.items():

        def rank(program: str, reason: str = reason) -> int:
            return int(hashlib.sha256(f"{SEED}:{reason}:{program}".encode()).hexdigest()[:12], 16)

        new = sorted((p for p in programs if p not in known), key=rank)
        held = sum(known.get(p) == "heldout" for p in programs)
        count = len(programs)
        wanted = max(1, round(count / 3)) if count > 1 else int(rank(programs[0]) < 16**12 / 3)
        for place, program in enumerate(new):
            known[program] = "heldout" if place < wanted - held else "dev"
    for case in cases:
        case.split = known[case.program]


def recorded() -> dict[str, dict[str, Any]]:
    """The manifest by case."""
    if not MANIFEST.exists():
        return {}
    rows = [json.loads(line) for line in MANIFEST.read_text().splitlines()]
    return {row["case"]: row for row in rows}


def environment(case: Case, work: Path) -> dict[str, str]:
    """What a job sees: nothing of the session that records."""
    path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    env = {
        "PATH": f"{VENV}/bin:{path}" if case.python == "venv" else path,
        "HOME": str(work / "home"),
        "USER": case.user or "alice",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "OMP_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "JAX_PLATFORMS": "cpu",
    }
    if case.digest("buffer") % 2:
        env["PYTHONUNBUFFERED"] = "1"
    if case.program.endswith(".rs") or case.program.startswith("cargo"):
        env |= rust(env["PATH"])
    return env | case.env


def rust(path: str) -> dict[str, str]:
    """How a job finds the Rust of whoever records."""
    cargo = shutil.which("cargo")
    return {
        "PATH": f"{path}:{Path(cargo).parent}" if cargo else path,
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
    }


def enter(address: str = "") -> None:
    """Gives this process's new namespaces loopback, an address on it where one is asked for, and a host name."""
    lines = ["ip link set lo up", f"hostname {HOST}", "mount --make-rprivate /"]
    if address:
        lines.append(f"ip addr add {address} dev lo")
    hosts = Path(f"/tmp/.hosts-{os.urandom(6).hex()}")
    hosts.write_text(f"127.0.0.1 localhost {HOST}\n")
    lines.append(f"mount --bind {hosts} /etc/hosts")
    subprocess.run(["sh", "-ec", "\n".join(lines)], check=True)
    hosts.unlink()


def inside(name: str, result: Path) -> None:
    """In the case's own namespaces: prepares the ground, runs the command, says how it ended."""
    case = next(c for c in load() if c.case == name)
    enter()
    work = workdir(case)
    shutil.rmtree(work, ignore_errors=True)
    (work / "home").mkdir(parents=True)
    for size, place in ((case.tmpfs_mb, work / "scratch"), (case.shm_mb, Path("/dev/shm"))):
        if size:
            place.mkdir(exist_ok=True)
            options = f"size={size}m,mode=1777"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)
    script = work / script_name(case)
    script.write_text(parse(PROGRAMS / f"{case.program}.txt")[1])
    script.chmod(0o755)
    env = environment(case, work)
    if case.setup:
        done = subprocess.run(
            ["bash", "-ec", fill(case.setup, case)], cwd=work, env=env, check=False, capture_output=True, text=True
        )
        if done.returncode:
            result.write_text(json.dumps({"error": f"setup: {done.stderr[-800:]}"}))
            return
    argv = ["bash", "-c", fill(case.run, case)]
    if case.user:
        subprocess.run(["chown", "-R", case.user, str(work / "home")], check=True)
        argv = ["setpriv", "--reuid", case.user, "--clear-groups", "--regid", "65534", *argv]
    group = Path("/sys/fs/cgroup/memory") / f"gpuctl_failures_{os.getpid()}_{work.name}"
    if case.mem_mb:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(case.mem_mb << 20))
        argv = ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh", *argv]
    code = capture(case, argv, work, env)
    if case.mem_mb:
        for pid in (group / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.3)
        group.rmdir()
    result.write_text(json.dumps({"code": code, "layout": layout(case)}))


def capture(case: Case, argv: list[str], work: Path, env: dict[str, str]) -> int | None:
    """Runs the command with its streams in files, apart or together; None where it does not end by itself."""
    out = ROOM / ".out" / case.case
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    apart = layout(case) == "apart"
    first, second = (out / "stdout.txt", out / "stderr.txt") if apart else (out / "output.txt", None)
    with first.open("ab") as stdout, (second or first).open("ab") as stderr, Path(os.devnull).open("rb") as nothing:
        process = subprocess.Popen(
            argv, cwd=work, env=env, stdin=nothing, stdout=stdout, stderr=stderr, start_new_session=True
        )
        try:
            if case.after:
                subprocess.run(
                    ["bash", "-c", fill(case.after, case)], cwd=work, env=env | {"JOB": str(process.pid)}, check=True
                )
            return process.wait(case.limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None
        finally:
            for path in sorted(work.glob("rank*.txt")):
                shutil.copy(path, out / path.name)


def layout(case: Case) -> str:
    """``apart``, ``merged`` or ``ranks``; half of the cases have their streams apart."""
    return case.layout or ("apart" if case.digest("layout") % 2 else "merged")


def workdir(case: Case) -> Path:
    """A place whose name says nothing of the reason."""
    return ROOM / f"{case.digest('place') % 9_000_000 + 1_000_000}"


def script_name(case: Case) -> str:
    """What the program is called while it runs."""
    stem, *rest = case.program.split(".")
    ending = ".".join(rest)
    number = int(hashlib.sha256(stem.encode()).hexdigest()[:8], 16)
    return ("Main." if ending == "java" else f"{NAMES[number % len(NAMES)]}.") + ending


def fill(text: str, case: Case) -> str:
    """Puts the program's name for {f} and its stem for {n}."""
    name = script_name(case)
    return text.replace("{f}", name).replace("{n}", name.split(".")[0])


def record(case: Case, versions: dict[str, dict[str, str]]) -> tuple[dict[str, Any] | None, str]:
    """Records one case; a row of the manifest, or None and what was wrong."""
    ROOM.mkdir(exist_ok=True)
    result = ROOM / f".result-{case.case}"
    result.unlink(missing_ok=True)
    flags = ["-n", "-m", "-u", "-i", "-p", "--fork", "--kill-child", "--mount-proc"]
    argv = ["nice", "unshare", *flags, sys.executable, __file__, "--inside", case.case, "--result", str(result)]
    ran = subprocess.run(argv, check=False, capture_output=True, text=True)
    if not result.exists():
        return None, ran.stderr[-1500:] or f"unshare: {ran.returncode}"
    answer = json.loads(result.read_text())
    result.unlink()
    if "error" in answer:
        return None, answer["error"]
    return keep(case, answer["code"], versions)


def keep(case: Case, code: int | None, versions: dict[str, dict[str, str]]) -> tuple[dict[str, Any] | None, str]:
    """Moves what a case printed to the fixtures where it ended as its program's head says."""
    out = ROOM / ".out" / case.case
    ended = (None, None) if code is None else (code, None) if code >= 0 else (None, -code)
    expected = (None, case.signal) if case.signal else (case.exit, None)
    if code is None or ended != expected:
        tail = "".join(p.read_text(errors="replace")[-1500:] for p in sorted(out.iterdir()))
        return None, f"ended with {ended}, not with {expected}\n{tail}"
    if case.must and not any(case.must in p.read_text(errors="replace") for p in out.iterdir()):
        return None, f"does not say {case.must!r}"
    files = [p for p in sorted(out.iterdir()) if p.stat().st_size or p.name in OUTPUTS[:2]]
    if sum(p.stat().st_size for p in files) > LARGEST:
        return None, f"printed more than {LARGEST} bytes"
    target = FIXTURES / case.split / case.case
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in files:
        (target / path.name).write_bytes(path.read_bytes().replace(HOME_PYTHON, b"/opt/python"))
    row = {
        "case": case.case,
        "split": case.split,
        "program": case.program,
        "stack": case.stack,
        "reason": case.reason,
        "acceptable": case.acceptable,
        "exit_code": ended[0],
        "exit_signal": ended[1],
        "state": case.state or ("completed" if case.reason is None else "failed"),
        "command": fill(case.run, case),
        "note": case.note,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": versions.get(made_of(case), {}),
    }
    return row, ""


def made_of(case: Case) -> str:
    """The same for cases of the same interpreter, stack and packages."""
    return "/".join((case.python, case.stack, *case.packages))


def _version_line(command: str, number: int) -> str:
    """That line of what a command writes, empty ones not counted; empty where there is no such program or line."""
    argv = shlex.split(command)
    if shutil.which(argv[0]) is None:
        return ""
    printed = subprocess.run(argv, check=False, capture_output=True, text=True).stdout
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    return lines[number] if number < len(lines) else ""


def found_versions(cases: list[Case]) -> dict[str, dict[str, str]]:
    """By interpreter and stack: the versions of what the case is made of."""
    code = "import importlib.metadata as m,json,sys,platform\nr={'python':platform.python_version()}\n"
    code += "for p in sys.argv[1:]:\n try: r[p]=m.version(p)\n except Exception: pass\nprint(json.dumps(r))"
    found: dict[str, dict[str, str]] = {}
    # commands, and which line of what each says is its version
    tools = {
        "c": [("gcc --version", 0)], "java": [("java --version", 0)], "shell": [("bash --version", 0)],
        "slurm": [("dpkg-query -W slurmctld", 0)], "r": [("Rscript --version", 0)],
        "octave": [("octave-cli --version", 0)], "ruby": [("ruby --version", 0)],
        "perl": [("perl -e 'print qq(perl $^V)'", 0)], "fortran": [("gfortran --version", 0)],
        "mpi": [("mpirun.openmpi --version", 0), ("mpirun.mpich --version", 1)],
    }  # fmt: skip
    for case in cases:
        key = made_of(case)
        if key in found:
            continue
        if case.stack in tools:
            found[key] = {case.stack: "; ".join(filter(None, (_version_line(*each) for each in tools[case.stack])))}
        else:
            python = f"{VENV}/bin/python" if case.python == "venv" else "/usr/bin/python3"
            names = {
                "numpy": ["numpy", "scipy", "pandas"],
                "jax": ["jax", "jaxlib", "numpy"],
                "torch": ["torch", "numpy"],
            }
            argv = [python, "-c", code, *names.get(case.stack, []), *case.packages]
            found[key] = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    return found


def write(rows: dict[str, dict[str, Any]]) -> None:
    """Writes the manifest, one case a line."""
    FIXTURES.mkdir(parents=True, exist_ok=True)
    part = MANIFEST.with_suffix(".part")
    part.write_text("".join(json.dumps(rows[name]) + "\n" for name in sorted(rows)))
    part.replace(MANIFEST)  # the cases that run meanwhile read it


def main() -> int:
    """Records; 1 where a case did not end as its program's head says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of cases; all without")
    parser.add_argument("--missing", action="store_true", help="only what has no recording yet")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the cases as JSON lines and stop")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.inside, options.result)
        return 0
    everything = load()
    rows = recorded()
    gone = rows.keys() - {c.case for c in everything}
    for name in gone:
        shutil.rmtree(FIXTURES / rows.pop(name)["split"] / name, ignore_errors=True)
    for case in everything:
        if case.case in rows:
            rows[case.case] |= {"reason": case.reason, "acceptable": case.acceptable, "note": case.note}
    chosen = [c for c in everything if not options.names or c.case.startswith(tuple(options.names))]
    chosen = [c for c in chosen if not (options.missing and c.case in rows)]
    if options.list:
        sys.stdout.writelines(json.dumps(asdict(c)) + "\n" for c in chosen)
        return 0
    versions = found_versions(chosen)
    wrong = 0
    from slurm_cases import record_all  # beside this file; only where it runs as a script

    with ThreadPoolExecutor(options.jobs) as pool:
        plain = [c for c in chosen if not c.slurm]
        results = zip(plain, pool.map(lambda c: record(c, versions), plain), strict=True)
        for case, (row, error) in results:
            if row is None:
                wrong += 1
                sys.stderr.write(f"--- {case.case}: {error}\n")
                continue
            rows[case.case] = row
            write(rows)
    for case, code, error in record_all([c for c in chosen if c.slurm]):
        row, problem = (None, error) if error else keep(case, code, versions)
        if row is None:
            wrong += 1
            sys.stderr.write(f"--- {case.case}: {problem}\n")
            continue
        rows[case.case] = row
    write(rows)
    sys.stderr.write(f"{len(chosen)} cases, {wrong} not as expected; {len(rows)} recorded in all\n")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
