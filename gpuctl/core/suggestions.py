"""Names that a user wrote, held against those that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_SHOWN = 5


def meant(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint for a name that there is not: those that are spelt like it, else `otherwise`, or all that there are."""
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(near)}?" if near else otherwise or f"known: {', '.join(names) or 'none'}"


def check_queues(given: Iterable[str], known: Collection[str]) -> None:
    """Refuse quotas of queues that a trace does not have, where one of its own is left without: names may be misspelt.

    Where every queue has its quota, others are of queues that no job of the trace is in, which does no harm.

    Args:
        given: queues that the user gave quotas of.
        known: those of the trace.

    Raises:
        InputError: there is such a queue; says which name is near.
    """
    from difflib import get_close_matches

    written = set(given)
    strangers, left = sorted(written.difference(known)), sorted(set(known) - written)
    if not strangers or not left:
        return
    near = {name: get_close_matches(name, left, n=1) for name in strangers[:_SHOWN]}
    listed = [f"{name!r} (did you mean {found[0]!r}?)" if found else repr(name) for name, found in near.items()]
    more = f" and {len(strangers) - _SHOWN} more" if len(strangers) > _SHOWN else ""
    raise InputError(
        f"--quotas names queues that are not in the trace: {', '.join(listed)}{more}",
        hint=f"queues without a quota in that file: {', '.join(left[:_SHOWN])}{' ...' if len(left) > _SHOWN else ''}; "
        "other queues are allowed only if all of these are in the file",
    )
