"""Contradictions and gaps in the sources of a cluster, as sentences for the first screen.

A share of the cluster's GPUs above 100 % is never a result: it is left out, and these sentences name the contradiction.
`queries/data_quality.sql` has the same findings as rows.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from gpuctl.core.notes import NamedValue, literal, note

if TYPE_CHECKING:
    from gpuctl.analyze.shared_tables import SharedTables
    from gpuctl.core.notes import Note
    from gpuctl.store.database import Store

SHARED_NAMES = ("most_held", "gpus_not_stated")
"""Files of ``queries/base`` that `contradictions` reads."""


def contradictions(store: Store, shared: SharedTables) -> list[tuple[float, Note]]:
    """Return sentences on GPUs held beyond those of the nodes, and on GPUs that accounting does not track.

    Each comes with the share of the GPUs, nodes or attempts that it concerns.
    """
    shared.ensure(SHARED_NAMES)
    rows = store.frame("SELECT *, strftime(ts, '%Y-%m-%d %H:%M:%S') AS at FROM base_most_held").to_dicts()
    found: list[tuple[float, Note]] = []
    whole = next((row for row in rows if row["machine"] is None), None)
    if whole is not None and whole["gpus"] is not None and whole["held"] > whole["gpus"] + 1e-6:
        excess = 1 - whole["gpus"] / whole["held"]
        text = note(
            "{held:,} GPU{held| was|s were} held at once, but the known nodes have {gpus:,} (at {at} UTC): nodes "
            "are missing from the list, or sizes or times in the log are wrong. Shares of the cluster's GPUs above "
            "100 % are left out",
            **_numbers(whole),
        )
        found.append((excess, text))
    machines = sorted(
        (row for row in rows if row["machine"]), key=lambda row: (row["gpus"] - row["held"], row["machine"])
    )
    if machines:
        text = note(
            "on {machines:,} node{machines||s} jobs held more GPUs at once than {machines|it has|they have}; "
            "most on {machine}: {held:,} of {gpus:,} (at {at} UTC)",
            machines=len(machines),
            machine=NamedValue("machine", machines[0]["machine"]),
            **_numbers(machines[0]),
        )
        every = store.value("SELECT count(*) FROM base_machines")
        found.append((len(machines) / every, text))
    [gpus] = store.frame("FROM base_gpus_not_stated").to_dicts()
    if gpus["unknown"]:
        text = note(
            "accounting does not track GPUs here: no record has gres/gpu, although the cluster has GPUs. The GPUs "
            "of {unknown:,} attempt{unknown||s} are unknown, not 0."
            " Set AccountingStorageTRES=gres/gpu; for the past, "
            "load scontrol show job -d or squeue --json",
            unknown=gpus["unknown"],
        )
        every = store.value("SELECT count(*) FROM base_attempts")
        found.append((gpus["unknown"] / every, text))
    return found


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    """Return held and existing GPUs, in whole GPUs, and the time."""
    return {"held": ceil(row["held"] - 1e-6), "gpus": round(row["gpus"]), "at": literal(row["at"])}
