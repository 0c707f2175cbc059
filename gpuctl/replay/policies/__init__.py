"""The policies, by name: those of the modules here, of installed packages, and of files.

A new one is one module here, or an entry point of the group ``gpuctl.policies`` whose name is the policy's.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.core import plugins
from gpuctl.core.errors import UsageError
from gpuctl.core.suggestions import meant
from gpuctl.replay.contract.policy import Policy, faults_of

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP = "gpuctl.policies"
_CLASS = re.compile(r'^class (\w+)\(.*\n(?:(?!class ).*\n)*?    name(?:: [\w\[\]]+)? = "([^"\n]+)"$', re.MULTILINE)
_LABELLED = re.compile(r"([A-Za-z0-9][\w.-]*)=(.+)", re.ASCII)


def built_in() -> dict[str, str]:
    """Module and class of each policy by its name, in the order of names; nothing is imported: the modules are heavy.

    A policy's class has its name in a line of its own: ``name = "..."``.

    Raises:
        ValueError: two policies have one name, a bug.
    """
    found: dict[str, str] = {}
    for folder in map(Path, __path__):
        for path in sorted(folder.rglob("*.py")):
            module = ".".join(path.relative_to(folder).with_suffix("").parts)
            if module == "__init__" or module.endswith("_kernel"):
                continue
            for cls, name in _CLASS.findall(path.read_text("utf-8")):
                if name in found:
                    raise ValueError(f"two policies are called {name}: {found[name]} and {module}:{cls}")
                found[name] = f"{module.removesuffix('.__init__')}:{cls}"
    return dict(sorted(found.items()))


BUILT_IN = built_in()
"""Module and class of each built-in policy, by name."""
_DEFINED: dict[str, type[Policy]] = {}
"""Classes that this process defines (`register`)."""


def installed() -> tuple[plugins.Plugin, ...]:
    """The policies of installed packages; none is imported."""
    return plugins.installed("policy", GROUP, BUILT_IN)


def origin(name: str) -> str:
    """Origin of a policy: built in, a package and its version, or a file."""
    return plugins.origin(name, installed())


def label(name: str) -> str:
    """Name of a policy in a comparison: ``LABEL`` of ``LABEL=POLICY``, else the policy's own name.

    Raises:
        UsageError: there is no such policy.
    """
    labelled = _LABELLED.fullmatch(name)
    return labelled[1] if labelled else find(name).name


def find(name: str) -> type[Policy]:
    """The policy of that name, or ``path/to/file.py:ClassName``, optionally prefixed by ``LABEL=``.

    Raises:
        UsageError: there is none, the file has no such class, or an installed package has a policy of the same name.
        InputError: its file or package cannot be loaded.
    """
    if labelled := _LABELLED.fullmatch(name):
        name = labelled[2]
    if name in _DEFINED:
        return _DEFINED[name]
    file = plugins.split_file(name)
    if file is not None:
        return _from_file(*file)
    packaged = [each for each in installed() if each.name == name]
    if packaged:
        return _from_package(packaged[0])
    if name not in BUILT_IN:
        known = sorted({*BUILT_IN, *(each.name for each in installed())})
        raise UsageError(f"there is no policy {name!r}", hint=meant(name, known) + "; or give FILE.py:CLASS")
    return built_in_policy(name)


def register(kind: type[Policy]) -> str:
    """Make a class known that a notebook or a script defines, and return the name that `find` then takes.

    Raises:
        UsageError: it is no policy, or its name is that of another policy.
    """
    if not issubclass(kind, Policy):
        raise UsageError(f"{kind.__name__} is no policy", hint="derive it from gpuctl.plugins.PythonPolicy")
    if not kind.name:
        kind.name = kind.__name__
    if kind.name in BUILT_IN or any(each.name == kind.name for each in installed()):
        raise UsageError(f"there is another policy {kind.name!r}", hint="give the class another name")
    _DEFINED[kind.name] = kind
    return kind.name


def make(name: str, params: Mapping[str, str]) -> Policy:
    """A policy of that name with these parameters.

    Raises:
        UsageError: there is none, or it has no such parameter.
        InputError: it cannot be loaded, or a user's own policy fails in ``__init__``.
    """
    kind = find(name)
    if kind.__module__.startswith(f"{__name__}."):
        return kind(params)
    with faults_of(vars(kind).get("__init__", Policy.__init__), f"{kind.name} failed in __init__()"):
        return kind(params)


def built_in_policy(name: str) -> type[Policy]:
    """The built-in policy of that name, whatever packages define."""
    module, _, cls = BUILT_IN[name].partition(":")
    found: type[Policy] = getattr(import_module(f"{__name__}.{module}"), cls)
    return found


def _from_package(plugin: plugins.Plugin) -> type[Policy]:
    found = plugin.load()
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise plugin.broken("it is not a subclass of gpuctl.replay.contract.policy.Policy")
    if found.name != plugin.name:
        raise plugin.broken(f"its class calls itself {found.name!r}")
    return found


def _from_file(path: Path, cls: str) -> type[Policy]:
    module = plugins.of_file(path, "policy", "--policy FILE.py:CLASS")
    found = module.__dict__.get(cls)
    if not (isinstance(found, type) and issubclass(found, Policy)):
        there = [n for n, v in vars(module).items() if isinstance(v, type) and issubclass(v, Policy) and v.name]
        raise UsageError(
            f"{path}: has no policy {cls!r}",
            hint=f"its policies are: {', '.join(there)}"
            if there
            else "a policy is a subclass of RankPolicy, PythonPolicy or CompiledPolicy",
        )
    if not found.name:
        found.name = cls
    return found
