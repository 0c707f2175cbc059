"""``scontrol show config``: the settings in force that scheduling depends on.

A row of the ledger is one line; blank lines do not count.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.reconcile import reconcile
from gpuctl.ingest.slurm.site.settings import is_stored, settings_rows
from gpuctl.slurm import recognise
from gpuctl.slurm.conf import without_secret
from gpuctl.slurm.scontrol import setting_of

_HEADING = re.compile(r"Configuration data as of .*|[\w .]+ (?:Support )?Configuration:|Slurmctld\(.*\) at .* is \w+")


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``settings``; headings, and settings that scheduling does not depend on, are counted as loaded."""
    found: dict[str, str] = {}
    for line in numbered_lines(stream):
        if not line.data.strip():
            continue
        sink.seen()
        try:
            text = line.text().strip()
            setting = setting_of(text)
            if setting is None and not _HEADING.fullmatch(text):
                raise RowError("neither Name = value nor a heading")
        except RowError as bad:
            sink.reject(line.line_no, str(bad), without_secret(line.data.decode("utf-8", "replace")))
            continue
        if setting is not None and is_stored(setting[0]):
            found[setting[0]] = setting[1].strip()
        sink.loaded()
    settings_rows(sink, found)
    reconcile(sink)


FORMAT = Format(
    name="slurm-config",
    title="Slurm: the settings in force (scontrol show config)",
    fills=("settings",),
    file_names=("scontrol_config.txt",),
    order=12,
    sniff=recognise.running_config,
    load=load,
)
