"""Finds lines of a log about checkpoints, and about the time of an iteration.

Megatron-LM (megatron/training/checkpointing.py, training.py), DeepSpeed and plain loggers name the step; Hugging Face's
Trainer names the folder ``checkpoint-STEP``.
"""

from __future__ import annotations

import re

from gpuctl.joblogs.evidence import Step

KINDS = frozenset({"saved", "saving", "loaded", "iteration"})
"""Values of `Step.metric` of such lines; of ``iteration``, `Step.value` has the seconds."""

PATTERNS: tuple[bytes, ...] = (
    rb"(?i)sav(?:ed|ing) (?:[a-z]{1,12} ){0,2}checkpoint",
    rb"(?i)checkpoint (?:[a-z]{1,12} ){0,2}saved",
    rb"(?i)loaded (?:[a-z]{1,12} ){0,2}checkpoint",
    rb"(?i)resum(?:ed|ing) (?:[a-z]{1,12} ){0,2}from",
    rb"(?i)time per iteration \(m?s\): ?\d",
)
"""Hyperscan expressions, as `gpuctl.joblogs.progress.PATTERNS`."""

_STEP = r"[^\n]{0,400}?(?:(?:step|iteration)\s{0,8}[=:]?\s{0,8}|checkpoint-)(?P<step>\d{1,15})(?!\d)"
_FORMS = {
    "saved": re.compile(
        rf"(?:saved (?:\w+ ){{0,2}}checkpoint|checkpoint (?:\w+ ){{0,2}}saved|saving model checkpoint){_STEP}",
        re.IGNORECASE,
    ),
    "saving": re.compile(rf"saving (?:\w+ ){{0,2}}checkpoint{_STEP}", re.IGNORECASE),
    "loaded": re.compile(rf"(?:loaded (?:\w+ ){{0,2}}checkpoint|resum(?:ed|ing)\b){_STEP}", re.IGNORECASE),
}
_ITERATION = re.compile(r"time per iteration \((m?s)\): ?(\d{1,12}(?:\.\d{1,9})?)", re.IGNORECASE)


def marks_of(text: str, line_no: int) -> list[Step]:
    """Read one line: a checkpoint ``saved``, being ``saving`` or ``loaded``, or the time of an ``iteration``."""
    if "teration (" in text:
        found = _ITERATION.search(text)
        if found:
            seconds = float(found[2]) / (1000 if found[1].lower() == "ms" else 1)
            return [Step(line_no, metric="iteration", value=seconds)]
    lower = text.lower()
    if "checkpoint" not in lower and "resum" not in lower:
        return []
    for kind, form in _FORMS.items():
        found = form.search(text)
        if found:
            return [Step(line_no, step=int(found["step"]), metric=kind)]
    return []
