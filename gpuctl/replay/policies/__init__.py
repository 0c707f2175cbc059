"""The policies, by name. A new one is one module here and one line below."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.files import read_whole
from gpuctl.core.paths import is_file
from gpuctl.replay.policy import Policy, own_fault

BUILT_IN = {
    "fifo": "fifo:Fifo",
    "fifo-skip": "fifo:FifoSkip",
    "sjf": "sjf:Sjf",
    "srtf": "srtf:Srtf",
    "srsf": "srtf:Srsf",
    "las": "las:Las",
    "fair": "fair:Fair",
    "drf": "drf:Drf",
    "tetris": "tetris:Tetris",
    "mesos": "mesos:Mesos",
    "random": "lottery:Random",
    "tiresias": "tiresias:Tiresias",
    "philly": "philly:Philly",
    "easy": "easy:Easy",
    "conservative": "conservative:Conservative",
    "slurm": "slurm:SlurmPolicy",
    "yarn-cs": "yarn_cs:YarnCs",
    "yarn-capacity": "yarn_capacity:YarnCapacity",
    "yarn-fair": "yarn_fair:YarnFair",
    "pickyman": "pickyman:PickyMan",
    "recorded": "recorded:Recorded",
}
"""Name, module and class."""


_LABELLED = re.compile(r"([A-Za-z0-9][\w.-]*)=(.+)", re.ASCII)


def label(name: str) -> str:
    """What a policy is called in a comparison: ``LABEL`` of ``LABEL=POLICY``, else the policy's own name.

    Raises:
        UsageError: there is no such policy.
    """
    labelled = _LABELLED.fullmatch(name)
    return labelled[1] if labelled else find(name).name


def find(name: str) -> type[Policy]:
    """The policy of that name, or ``path/to/file.py:ClassName``; ``LABEL=`` may stand before either.

    Raises:
        UsageError: there is none, or the file has no such class.
    """
    if labelled := _LABELLED.fullmatch(name):
        name = labelled[2]
    path, colon, cls = name.rpartition(":")
    if colon and path.endswith(".py"):
        return _from_file(Path(path), cls)
    if name not in BUILT_IN:
        from difflib import get_close_matches

        near = get_close_matches(name, BUILT_IN, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(BUILT_IN)}"
        raise UsageError(f"there is no policy {name!r}", hint=hint + "; or give FILE.py:CLASS")
    module, _, cls = BUILT_IN[name].partition(":")
    found: type[Policy] = getattr(import_module(f"gpuctl.replay.policies.{module}"), cls)
    return found


def _from_file(path: Path, cls: str) -> type[Policy]:
    if not is_file(path):
        raise UsageError(f"{str(path)[:200]}: there is no such file", hint="--policy FILE.py:CLASS")
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    try:
        code = compile(read_whole(path), str(path), "exec")
        # the user's own file, named on the command line: running it is what was asked for
        exec(code, module.__dict__)  # noqa: S102
    except InputError:
        raise
    except SyntaxError as error:
        raise InputError(f"not Python: {error.msg}", path=str(path), line=error.lineno) from error
    except Exception as error:
        raise own_fault(error, str(path), "it cannot be loaded") from error
    found = module.__dict__.get(cls)
    if not (isinstance(found, type) and issubclass(found, Policy)):
        there = [n for n, v in vars(module).items() if isinstance(v, type) and issubclass(v, Policy) and v.name]
        raise UsageError(
            f"{path}: has no policy {cls!r}",
            hint=f"its policies are: {', '.join(there)}"
            if there
            else "a policy is a subclass of RankPolicy or PythonPolicy",
        )
    if not found.name:
        found.name = cls
    return found
