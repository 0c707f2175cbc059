"""What a shell completes (``gpuctl --install-completion``): tables, sections, policies. Nothing heavy is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable


def tables(context: typer.Context, incomplete: str) -> list[str]:
    """Tables of the command's results."""
    if context.info_name == "replay":
        from gpuctl.cli.replay_tables import TABLES

        return _beginning(TABLES, incomplete)
    if context.info_name == "lessons":
        from gpuctl.lessons.run import TABLES as LESSONS_GIVE

        return _beginning(LESSONS_GIVE, incomplete)
    if context.info_name != "analyze":
        return []
    from gpuctl.analyze.registry import all_analyses

    return _beginning(all_analyses(), incomplete)


def sections(context: typer.Context, incomplete: str) -> list[str]:
    """Sections of the command's results."""
    if context.info_name == "replay":
        from gpuctl.cli.replay_tables import SECTIONS

        return _beginning(SECTIONS, incomplete)
    from gpuctl.queries.sections import SECTIONS as ANALYZED

    return _beginning((key for key, _ in ANALYZED), incomplete)


def lessons(incomplete: str) -> list[str]:
    """Lessons of the Philly study."""
    from gpuctl.lessons.names import LESSONS

    return _beginning(LESSONS, incomplete)


def policies(incomplete: str) -> list[str]:
    """Policies, the last one of several with commas between them."""
    from gpuctl.replay.policies import BUILT_IN, installed

    before, comma, last = incomplete.rpartition(",")
    names = {*BUILT_IN, *(each.name for each in installed())}
    return [f"{before}{comma}{name}" for name in _beginning(sorted(names), last)]


def views(incomplete: str) -> list[str]:
    """Tables that ``gpuctl query`` reads."""
    from gpuctl.store.views import VIEWS

    return _beginning((view.name for view in VIEWS), incomplete)


def states(incomplete: str) -> list[str]:
    """States of jobs, the last one of several with commas between them."""
    from gpuctl.core.states import State

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _beginning(State, last)]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [str(name) for name in names if name.startswith(incomplete)]
