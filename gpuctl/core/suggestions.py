"""Suggestions for misspelt names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_SHOWN = 5


def meant(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a hint for an unknown name: similar names, else `otherwise`, else all known names."""
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(near)}?" if near else otherwise or f"known: {', '.join(names) or 'none'}"


def check_queues(given: Iterable[str], known: Collection[str]) -> None:
    """Reject quotas for unknown queues if a queue of the trace has none: the names may be misspelt.

    If every queue has its quota, the others belong to queues without a job in the trace, which is harmless.

    Args:
        given: queues for which the user set quotas.
        known: those of the trace.

    Raises:
        InputError: there is such a queue; the message suggests a similar name.
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
