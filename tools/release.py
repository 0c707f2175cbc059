"""Builds a release and tries it as a user would: `make release`.

Writes the wheel and the sdist to dist/, checks their metadata strictly, and installs each into an empty environment,
the wheel for every Python of VERSIONS on this machine. There it runs ``gpuctl --version`` and the main job of the
README, with a PATH that has no compiler and no git, and without a network if this user may cut it off.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
UV = Path(sys.executable).with_name("uv")
OFFLINE = ("unshare", "--net", "--")


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Run a command and return what it prints; if it fails, print that and end."""
    done = subprocess.run(
        [os.fspath(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"error: {' '.join(map(os.fspath, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def pythons() -> dict[str, Path]:
    """Return the interpreters of VERSIONS that are installed here, those of pyenv included."""
    found = {}
    for version in VERSIONS:
        done = subprocess.run(
            [UV, "python", "find", "--no-project", "--system", "--no-python-downloads", version],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        places = [Path(done.stdout.strip())] if done.returncode == 0 else []
        places += Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python3")
        if places:
            found[version] = places[0]
    return found


def build() -> tuple[Path, Path]:
    """Return the wheel, built from the sdist, and the sdist, both new and checked."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, ROOT)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    run(UV, "tool", "run", "twine@latest", "check", "--strict", wheel, sdist)
    return wheel, sdist


def offline() -> tuple[str, ...]:
    """Return what to put before a command so that it has no network; nothing where this user may not do so."""
    if (
        shutil.which(OFFLINE[0])
        and subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode == 0
    ):
        return OFFLINE
    return ()


def install_and_try(package: Path, python: Path) -> str:
    """Install a package into an empty environment, run the README's main job there, and return its version."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(UV, "venv", "--quiet", "--no-project", "--python", python, folder / "venv")
        # only gpuctl itself may be built: a user needs no compiler
        binary = ["--only-binary", ":all:"] + (["--no-binary", "gpuctl-toolkit"] if package.suffix == ".gz" else [])
        run(UV, "pip", "install", "--quiet", "--python", folder / "venv/bin/python", *binary, package, cwd=folder)
        env = {"PATH": f"{folder}/venv/bin", "HOME": name, "LANG": "C.UTF-8"}
        gpuctl = [*(shutil.which(word) or word for word in offline()[:1]), *offline()[1:], folder / "venv/bin/gpuctl"]
        version = run(*gpuctl, "--version", cwd=folder, env=env).strip()
        screen = run(
            *gpuctl, "analyze", ROOT / "sample_data/philly", "--format", "table", "--html", "report.html",
            cwd=folder, env=env,
        )  # fmt: skip
        if "1,962 jobs" not in screen or not (folder / "report.html").stat().st_size:
            sys.exit(f"error: {package.name} on {python}: not the answer of the README\n{screen}")
        return version


def main() -> None:
    """Build, check, install, run."""
    wheel, sdist = build()
    print(f"{wheel.name}, {sdist.name}: metadata is in order")
    if not offline():
        print("The network cannot be cut off here: run as root for that")
    found = pythons()
    for version, python in found.items():
        print(f"wheel on Python {version} ({python}): {install_and_try(wheel, python)}", flush=True)
    first = next(iter(found))
    print(f"sdist on Python {first}: {install_and_try(sdist, found[first])}")
    if missing := [version for version in VERSIONS if version not in found]:
        print(f"Not tried, no such Python here: {', '.join(missing)}")


if __name__ == "__main__":
    main()
