"""Recognises Slurm's files and the output of its commands by their first bytes; functions return a reason or None."""

from __future__ import annotations

import re

_NODE = re.compile(rb"^[ \t]*NodeName[ \t]*=[ \t]*\S", re.IGNORECASE | re.MULTILINE)
_PARTITION = re.compile(rb"^[ \t]*PartitionName[ \t]*=[ \t]*\S+[ \t]+\S*=", re.IGNORECASE | re.MULTILINE)
_OWN = re.compile(
    rb"^[ \t]*(?:ClusterName|SlurmctldHost|ControlMachine|SlurmctldPort|SelectType|SchedulerType)[ \t]*=[ \t]*\S",
    re.IGNORECASE | re.MULTILINE,
)
_OTHERS = re.compile(
    rb"CPUAlloc=\d|^[ \t]*(?:AutoDetect|Name|SwitchName|BlockName)[ \t]*=|^NodeName=.*[ \t]Name=gpu|"
    rb"^[ \t]*(?:DbdHost|DbdAddr|StorageLoc)[ \t]*=|^[ \t]+AllowGroups=|^PartitionName=\S+ AllowGroups=|"
    rb"^Configuration data as of",
    re.IGNORECASE | re.MULTILINE,
)
_CONF_WORDS = re.compile(
    rb"^[ \t]*NodeName[ \t]*=.*[ \t](?:Gres|CPUs|Sockets|RealMemory|NodeAddr|NodeHostname|CoresPerSocket)[ \t]*=",
    re.IGNORECASE | re.MULTILINE,
)


def conf(name: str, head: bytes) -> str | None:
    """Recognise statements that only slurm.conf has, not other tools' lines with the same keys."""
    del name
    if _OTHERS.search(head):
        return None
    if _OWN.search(head) and (_NODE.search(head) or _PARTITION.search(head) or b"Slurmctld" in head):
        return "statements of slurm.conf"
    if _NODE.search(head) and b"=" in head and _CONF_WORDS.search(head):
        return "NodeName= statements of slurm.conf"
    return "PartitionName= statements of slurm.conf" if _PARTITION.search(head) else None


_FIRST = b"Configuration data as of"


def running_config(name: str, head: bytes) -> str | None:
    """Recognise the first line that scontrol prints."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "heading of scontrol show config" if text.startswith(_FIRST) else None


NODE_START = b"NodeName="
_NODE_SHAPE = re.compile(rb"\sCPUAlloc=\d+\s(?:.*?\s)?CPUTot=\d+", re.DOTALL)


def nodes(name: str, head: bytes) -> str | None:
    """Recognise records that begin with NodeName= and state how many CPUs are allocated."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "NodeName= records with CPUAlloc=" if text.startswith(NODE_START) and _NODE_SHAPE.search(text) else None


_PARTITION_SHAPE = re.compile(rb"PartitionName=\S+\s+AllowGroups=")


def partitions(name: str, head: bytes) -> str | None:
    """Recognise PartitionName= followed by AllowGroups=, in the order in which scontrol prints them."""
    del name
    shaped = _PARTITION_SHAPE.match(head.removeprefix(b"\xef\xbb\xbf").lstrip())
    return "PartitionName= records of scontrol" if shaped else None


_SNIFF = re.compile(rb"^Cluster\s*-\s*'[^'\n]*'", re.MULTILINE | re.IGNORECASE)
_SNIFF_MORE = re.compile(rb"^(?:Parent|Account|User)\s*-\s*'[^'\n]*'", re.MULTILINE | re.IGNORECASE)


def dump(name: str, head: bytes) -> str | None:
    """Recognise a line Cluster - 'name' and one of Parent, Account or User."""
    del name
    return "Cluster - 'name' lines of sacctmgr dump" if _SNIFF.search(head) and _SNIFF_MORE.search(head) else None


_LEAF = re.compile(rb"^[ \t]*(?:SwitchName|BlockName)[ \t]*=[ \t]*\S", re.IGNORECASE | re.MULTILINE)


def topology(name: str, head: bytes) -> str | None:
    """Recognise statements that begin with SwitchName= or BlockName=."""
    del name
    return "SwitchName= or BlockName= statements" if _LEAF.search(head) else None
