"""``gpuctl policies``: the scheduling policies that a replay can run, and their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import message, named_to_check, print_json, print_table, print_violations, visible
from gpuctl.cli.options import PlainJsonOption
from gpuctl.cli.settings import settings
from gpuctl.core.errors import GpuctlError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.replay.contract.policy import Parameter, Policy


def policies(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One policy, or FILE.py:CLASS: show its parameters. Default: list all."),
    ] = None,
    check: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Replay N random workloads under the policy and report every violated invariant.",
        ),
    ] = None,
    as_json: PlainJsonOption = False,
) -> None:
    """List the policies that a replay can run, or show the parameters, source and inputs of one."""
    from gpuctl.replay.policies import find, origin

    options = settings(context)
    as_json = as_json or options.json
    if check is not None:
        _check(find(named_to_check(name, "policy", "gpuctl policies NAME --check 100")), check, as_json=as_json)
        return
    if name is not None:
        _show(find(name), origin(name), as_json=as_json, color=options.color)
        return
    kinds = list(_all())
    if as_json:
        print_json([_facts(kind, whence) for kind, whence in kinds])
        return
    rows = [(kind.name, _yes(kind.preempts), _yes(kind.oracle), whence, kind.title) for kind, whence in kinds]
    print_table(("name", "preempts", "true run times", "from", "title"), rows, color=options.color, wide="title")


def _all() -> Iterator[tuple[type[Policy], str]]:
    """Every policy and where it is from; of one that cannot be used, why not is told instead."""
    from gpuctl.core.plugins import BUILT_IN as OURS
    from gpuctl.replay.policies import BUILT_IN, built_in_policy, find, installed

    for name in BUILT_IN:
        yield built_in_policy(name), OURS
    for plugin in {each.name: each for each in installed()}.values():
        try:
            yield find(plugin.name), plugin.origin
        except GpuctlError as error:
            message(f"Warning: {error.message}")


def _check(kind: type[Policy], cases: int, *, as_json: bool) -> None:
    from gpuctl.replay.contract.conformance import check

    found = check(kind, cases)
    about = {"policy": kind.name, "cases": cases}
    print_violations(about, found, f"{kind.name}: {cases} random workloads", as_json=as_json)


def _show(kind: type[Policy], whence: str, *, as_json: bool, color: bool) -> None:
    if as_json:
        print_json(_facts(kind, whence))
        return
    rows = [
        ("name", kind.name),
        ("from", visible(whence)),
        ("title", visible(kind.title)),
        ("source", visible(kind.source)),
        ("preempts", _yes(kind.preempts)),
        ("CPUs and memory", "can count (--resources)" if kind.resources else "ignored: only GPUs count"),
        ("true run times", "required, but unknown to real schedulers" if kind.oracle else "not needed"),
    ]
    rows += [(f"--param {p.name}={_text(p)}", visible(_about(p))) for p in kind.parameters]
    print_table(("of the policy", "is"), rows, color=color)


def _about(parameter: Parameter) -> str:
    choices = f"; one of {', '.join(parameter.choices)}" if parameter.choices else ""
    return f"{parameter.text}{choices or parameter.span}"


def _text(parameter: Parameter) -> str:
    """The default as it is written on the command line."""
    value = parameter.default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(f"{number:g}" for number in value)
    return value if isinstance(value, str) else f"{value:g}"


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _facts(kind: type[Policy], whence: str) -> dict[str, object]:
    return {
        "name": kind.name,
        "from": whence,
        "title": kind.title,
        "source": kind.source,
        "preempts": kind.preempts,
        "oracle": kind.oracle,
        "resources": kind.resources,
        "parameters": [
            {
                "name": p.name,
                "default": p.default,
                "choices": list(p.choices),
                "text": p.text,
                "least": p.least,
                "most": p.most,
            }
            for p in kind.parameters
        ],
    }
