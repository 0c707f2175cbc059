"""Distinguishes the logs of YARN's daemons by the loggers in their first records."""

from __future__ import annotations

import re

_THREAD = rb"(?:\[[^\]\n]*\] +)?"
_ZONE = rb"(?: ?(?:[+-]\d\d:?\d\d|(?!(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) )[A-Z]{1,5}(?= +(?:\[|[A-Z]{4,5} ))))?"
_DATED = re.compile(
    rb"^(?:\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[,.]\d{3})?|\d\d/\d\d/\d\d \d\d:\d\d:\d\d)"
    rb"%s +%s[A-Z]+ +%s([^\s:]+)" % (_ZONE, _THREAD, _THREAD),
    re.MULTILINE,
)
_SUMMARY = re.compile(rb"RMAppManager\$ApplicationSummary")
_RM = re.compile(
    rb"(?:^|\.)(?:resourcemanager\.|RMAppImpl|RMAppAttemptImpl|RMContainerImpl|RMAuditLogger|CapacityScheduler|FairScheduler|"
    rb"SchedulerNode|ResourceManager)"
)
_NM = re.compile(
    rb"(?:^|\.)(?:nodemanager\.|NMAuditLogger|NodeStatusUpdaterImpl|ContainerManagerImpl|ContainersMonitorImpl)"
)


def daemon_of(head: bytes) -> str | None:
    """Identify the daemon of a log.

    Args:
        head: its first bytes.

    Returns:
        ``resourcemanager``, ``nodemanager`` (the one with more records, if both are in it), ``summary`` if all records
        of these daemons are ApplicationSummary lines, or None.
    """
    loggers = _DATED.findall(head.removeprefix(b"\xef\xbb\xbf"))
    summaries = sum(_SUMMARY.search(name) is not None for name in loggers)
    managers = sum(_RM.search(name) is not None for name in loggers)
    nodes = sum(_NM.search(name) is not None for name in loggers)
    if summaries and summaries == len(loggers):
        return "summary"
    if not managers and not nodes:
        return None
    return "nodemanager" if nodes > managers else "resourcemanager"
