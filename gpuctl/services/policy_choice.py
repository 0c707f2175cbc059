"""Which policies a replay is asked for, and the parameters of each."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError
from gpuctl.core.suggestions import meant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from gpuctl.replay.contract.policy import Policy


def policies(
    given: Sequence[str], params: Sequence[str], conf: Mapping[str, Sequence[Path]]
) -> list[tuple[str, dict[str, str]]]:
    """The policies asked for, each with its parameters as texts.

    Args:
        given: what ``--policy`` says, names with commas between them.
        params: what ``--param`` says.
        conf: configuration files, by whose they are (`gpuctl.replay.contract.policy.Policy.reads`).

    Raises:
        UsageError: something of it makes no sense.
    """
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError("no policy to replay", hint="--policy fifo,srtf; gpuctl policies lists them")
    from gpuctl.replay.policies import find, label, make

    kinds = {name: find(name) for name in names}
    called = [label(name) for name in names]
    twice = next((each for each in called if called.count(each) > 1), None)
    if twice is not None:
        raise UsageError(
            f"--policy names {twice} twice",
            hint=f"give only one a label, other={twice}, and its parameters as other.NAME=VALUE",
        )
    chosen = {name: _conf_of(kind, conf) for name, kind in kinds.items()}
    _check_conf(kinds.values(), conf)
    parts = [text.partition("=") for text in params]
    bad = next((text for text, part in zip(params, parts, strict=True) if not part[0].strip() or not part[1]), None)
    if bad is not None:
        raise UsageError(f"--param {bad}: expected NAME=VALUE or POLICY.NAME=VALUE")
    found: set[str] = set()
    for nearness in range(3):
        # what is said of a label goes before what is said of its policy, and that before what is said of all
        for key, _, value in parts:
            for name, kind in kinds.items():
                for parameter in kind.parameters:
                    prefixes = ({""}, {f"{kind.name}."}, {f"{name}.", f"{label(name)}."} - {f"{kind.name}."})
                    if key.strip() in {prefix + parameter.name for prefix in prefixes[nearness]}:
                        chosen[name][parameter.name] = value.strip()
                        found.add(key)
    unknown = next((key for key, _, _ in parts if key not in found), None)
    if unknown is not None:
        raise UsageError(f"--param {unknown}: no policy here has this parameter", hint=_there(unknown, kinds))
    for name in kinds:
        make(name, chosen[name])
    return list(chosen.items())


def _there(unknown: str, kinds: Mapping[str, type[Policy]]) -> str:
    """What there is in place of a parameter that there is not: spelt alike, of another label, or all of each policy."""
    from gpuctl.replay.policies import label

    of = {kind.name: [p.name for p in kind.parameters] for kind in kinds.values()}
    _, _, wanted = unknown.strip().rpartition(".")
    owners = [f"{label(name)}.{wanted}" for name, kind in kinds.items() if wanted in of[kind.name]]
    if owners:
        return f"there is {', '.join(owners)}"
    lists = [f"{name} has {', '.join(names)}" for name, names in of.items() if names]
    known = dict.fromkeys(name for names in of.values() for name in names)
    return meant(wanted, known, "; ".join(lists) or "the policies have no parameters")


def _conf_of(kind: type[Policy], conf: Mapping[str, Sequence[Path]]) -> dict[str, str]:
    """The parameter that tells a policy of its configuration files, where some are given."""
    paths = conf.get(kind.reads, ())
    return {"conf": os.pathsep.join(map(str, paths))} if paths else {}


def _check_conf(kinds: Iterable[type[Policy]], conf: Mapping[str, Sequence[Path]]) -> None:
    """See that some policy reads the configuration that is given, and that its files are there."""
    readers = {kind.reads for kind in kinds}
    for who, paths in conf.items():
        if paths and who not in readers:
            raise UsageError(
                f"--{who}-conf: no policy here reads it",
                hint="--policy slurm does" if who == "slurm" else "--policy yarn-capacity and yarn-fair do",
            )
        for path in paths:
            if not path.exists():
                raise UsageError(f"--{who}-conf {path}: no such file or directory")
            if os.pathsep in str(path):
                raise UsageError(f"--{who}-conf {path}: paths with {os.pathsep!r} are not supported")


def checked_baseline(given: str | None, names: list[tuple[str, dict[str, str]]]) -> str | None:
    """What ``--baseline`` names, as it is called in the comparison.

    Raises:
        UsageError: none.
    """
    if given is None:
        return None
    from gpuctl.replay.policies import label

    called = {name: label(name) for name, _ in names}
    if given not in {*called, *called.values()}:
        there = ", ".join(called.values())
        raise UsageError(f"--baseline {given}: not one of the policies replayed", hint=f"those are: {there}")
    return called.get(given, given)
