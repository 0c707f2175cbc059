"""Loads signature tables: TOML files that map programs' output to reasons of failure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import MOST_TOML, parse_toml, read_whole
from gpuctl.joblogs.structure import FORMATS, PREFIX, compilers, launchers, library_areas, python
from gpuctl.joblogs.structure.ending import PROGRAM_ERROR

LAST_WORDS = PREFIX + "last-words"
"""Signatures of what a program's last lines state that no format marks as an error: they count only if it failed."""
READ = PREFIX + "reads-"
"""Signatures of what a message is about by the learned reader are `READ`, the reason, ``-``, and the level."""
LEVELS = (("sure", 0.9, 0.9), ("likely", 0.75, 0.75), ("perhaps", 0.6, 0.5), ("guess", 0.45, 0.35))
"""How sure a reading is: a level, the least confidence of its readings, and the confidence that its verdicts state."""
PERHAPS = "perhaps"
SECOND = "second"
"""Level of a reading that is almost as likely as the first one."""
NOTHING = PREFIX + "nothing"
"""Signature of a log without a word."""
NOTHING_LOGGED = "nothing_logged"
CONFIRMED = Path(__file__).parent / "learned" / "confirmed.json"
"""Root signatures, and how many recorded programs' failures they explain rightly (`tools/confirm_signatures.py`)."""
LEAST_CONFIRMED = 3
_UNCONFIRMED = 0.9
"""Confidence of gpuctl's own root signatures that fewer programs confirm, and that state none."""
RELEASE = "2026.11"
"""Of the tables that gpuctl brings; the version also holds a digest of all that was loaded."""
NO_SIGNATURE = "no_signature"
CATEGORIES = ("infrastructure", "ai_engine", "user")
_EXPECTED = "expected: [[signature]] and [reason.SLUG]"
_PATTERN_LIMIT = 1000
_EXAMPLES_LIMIT = 4096


class Tier(StrEnum):
    """Weight of a signature's line as evidence."""

    ROOT = "root"
    """By itself explains why the program failed."""
    ERROR = "error"
    """An error that something else may have caused, or that programs often survive."""
    SYMPTOM = "symptom"
    """Shows that another process died first, or no longer answers."""
    GENERIC = "generic"
    """Shows that the program died, not why: a traceback, a core dump, an exit code."""
    HARMLESS = "harmless"
    """Its line is no evidence of a failure, whatever other signatures it matches."""
    RECOVERED = "recovered"
    """The program overcame earlier errors."""
    SUCCESS = "success"
    """The program reports success; counts if a log ends with it and no source states that the attempt failed."""
    NOISE = "noise"
    """Part of what is printed around a failure; neither evidence nor ordinary output."""


_READER = "tools/learn_reasons.py: a model of what messages are about"
_TIERS = {"sure": Tier.ERROR, "likely": Tier.ERROR, PERHAPS: Tier.SYMPTOM, "guess": Tier.SYMPTOM, SECOND: Tier.GENERIC}
CAUSES = (Tier.ROOT, Tier.ERROR, Tier.SYMPTOM, Tier.GENERIC)
"""Tiers of signatures that give a reason, the strongest first."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for which attempts fail.

    Attributes:
        slug: its name in tables and JSON.
        title: for people.
        categories: of `CATEGORIES`.
        table7: its name in Table 7 of the ATC'19 paper; None if absent.
    """

    slug: str
    title: str
    categories: tuple[str, ...]
    table7: str | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """One wording.

    Attributes:
        id: unique.
        tier: its weight as evidence.
        pattern: in Hyperscan's syntax; matches within one line. Empty if a reader of a format finds it
            (`gpuctl.joblogs.structure`).
        reason: slug; None for tiers that give none.
        start: it must be at the beginning of the line, after timestamps, levels and ranks.
        caseless: ignore case.
        label: it counts only in a line that is marked as an error (``ValueError: ``, ``[ERROR] ``, ``fatal: ``).
        fallback: 1 (true): it names a class of errors, and does not count on a line in which another one is found;
            2: so wide a class (a built-in exception, words in a class's name) that those with 1 take its place too.
        final: a cluster manager's message that it ended the job or container: no program survives it.
        category: narrower than the reason's; None: the reason's own.
        confidence: of its verdicts; 0: that of its tier. Of gpuctl's own root signatures that no three recorded
            programs confirm, 0.9.
        examples: whole lines that match.
        never: similar lines that must not match.
        source: source of the wording.
    """

    id: str
    tier: Tier
    pattern: str
    reason: str | None = None
    start: bool = False
    caseless: bool = False
    label: bool = False
    fallback: int = 0
    final: bool = False
    category: str | None = None
    confidence: float = 0.0
    examples: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True)
class Table:
    """All signatures of a scan, and their reasons.

    Attributes:
        version: release and digest; tables with the same version give the same results.
        reasons: by slug.
        signatures: by id.
        learned: whether the learned model classifies last lines where signatures would guess.
    """

    version: str
    reasons: Mapping[str, Reason]
    signatures: Mapping[str, Signature]
    learned: bool = True

    def category(self, reason: str, signature: str | None = None) -> str | None:
        """Return the categories of a reason joined by ``+``, those of the signature if it is narrower."""
        found = self.signatures.get(signature) if signature is not None else None
        if found is not None and found.category is not None:
            return found.category
        return "+".join(self.reasons[reason].categories) or None


def load(extra: Sequence[Path] = (), *, learned: bool = True) -> Table:
    """Load gpuctl's own tables, then the user's.

    Args:
        extra: TOML files with ``[[signature]]`` and, for reasons of their own, ``[reason.SLUG]``. A signature replaces
            an existing one with the same id.
        learned: see `Table`.

    Raises:
        InputError: a file cannot be read, or has an unknown entry; the message names file and signature.
    """
    own = _own()
    digest, reasons, signatures = own[0].copy(), dict(own[1]), dict(own[2])
    for path in extra:
        data = read_whole(path, most=MOST_TOML, hint=_EXPECTED)
        digest.update(data)
        _merge(str(path), data, reasons, signatures, own=False)
    return Table(f"{RELEASE}+{digest.hexdigest()[:12]}", reasons, signatures, learned)


@cache
def _own() -> tuple[hashlib._Hash, Mapping[str, Reason], Mapping[str, Signature]]:
    """Return gpuctl's own tables and their digest: read once, which takes a third of a second."""
    digest = hashlib.sha256()
    reasons: dict[str, Reason] = {}
    signatures: dict[str, Signature] = {}
    own = sorted(
        (entry for entry in files("gpuctl.joblogs.signatures").iterdir() if entry.name.endswith(".toml")),
        key=lambda entry: (entry.name != "reasons.toml", entry.name),
    )
    for entry in own:
        data = entry.read_bytes()
        digest.update(data)
        _merge(entry.name, data, reasons, signatures, own=True)
    digest.update(repr([(form.name, form.starts, form.reasons) for form in FORMATS]).encode())
    for part in ("card.json", "weights.npz"):
        digest.update(files("gpuctl.joblogs.learned").joinpath(part).read_bytes())
    data = CONFIRMED.read_bytes()
    digest.update(data)
    known = json.loads(data)
    for one in list(signatures.values()):
        if one.tier == Tier.ROOT and not one.confidence and one.id not in known:
            signatures[one.id] = replace(one, confidence=_UNCONFIRMED)
    return digest, reasons, {**signatures, **_of_formats(reasons)}


def _of_formats(reasons: Iterable[str]) -> dict[str, Signature]:
    """Return the signatures of endings that formats find, and of other last lines."""
    made = [Signature(PREFIX + form.name, Tier.NOISE, "", source=form.source) for form in launchers.FORMATS]
    for form in FORMATS:
        if form not in launchers.FORMATS:
            compiler = form in compilers.FORMATS
            reason, tier = ("compiler_error", Tier.ROOT) if compiler else (PROGRAM_ERROR, Tier.SYMPTOM)
            if form.name == "level":
                tier = Tier.GENERIC
            made.append(Signature(PREFIX + form.name, tier, "", reason, source=form.source))
            made += [
                Signature(f"{PREFIX}{form.name}-in-{own}", Tier(weight), "", own, source=form.source)
                for own, weight in form.reasons
            ]
    made += [
        Signature(f"{PREFIX}python-in-{reason}", Tier.ERROR, "", reason, source=python.FORMAT.source)
        for reason in library_areas.REASONS
    ]
    made += [
        Signature(
            f"{LAST_WORDS}-in-{reason}", Tier.GENERIC, "", reason, source="the last lines of a program that failed"
        )
        for reason in reasons
        if reason not in {NO_SIGNATURE, NOTHING_LOGGED}
    ]
    made.append(
        Signature(LAST_WORDS, Tier.GENERIC, "", PROGRAM_ERROR, source="the last lines of a program that failed")
    )
    made.append(Signature(NOTHING, Tier.GENERIC, "", NOTHING_LOGGED, source="a log without a word"))
    for reason in reasons:
        if reason not in {NO_SIGNATURE, NOTHING_LOGGED}:
            made += [
                Signature(f"{READ}{reason}-{level}", _TIERS[level], "", reason, confidence=stated, source=_READER)
                for level, stated in (*((level, stated) for level, _, stated in LEVELS), (SECOND, LEVELS[-1][2]))
            ]
    return {one.id: one for one in made}


def reading_ids(reason: str, confidence: float, second: str | None) -> list[str]:
    """Return the ids of the signatures of a reading, the likelier first; none if it is less than a perhaps."""
    level = next((name for name, least, _ in LEVELS if confidence >= least), None)
    if level is None:
        return []
    if second is None:
        return [f"{READ}{reason}-{level}"]
    return [f"{READ}{reason}-{level if level == LEVELS[-1][0] else PERHAPS}", f"{READ}{second}-{SECOND}"]


def _merge(name: str, data: bytes, reasons: dict[str, Reason], signatures: dict[str, Signature], *, own: bool) -> None:
    content = parse_toml(data, name, _EXPECTED)
    strangers = content.keys() - {"reason", "signature"}
    if strangers:
        raise InputError(f"has {sorted(strangers)[0][:60]!r} at its top level", path=name, hint=_EXPECTED)
    for slug, fields in _mapping(name, content.get("reason", {})).items():
        reasons[slug] = _reason(name, slug, fields)
    entries = content.get("signature", [])
    if not isinstance(entries, list):
        raise InputError("signature is not a list of tables", path=name, hint="write [[signature]], with two brackets")
    for number, fields in enumerate(entries, 1):
        signature = _signature(name, number, fields, reasons)
        if own and signature.id in signatures:
            raise InputError(f"signature {signature.id!r} occurs twice", path=name)
        signatures[signature.id] = signature


def _mapping(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError("reason is not a table", path=name, hint="write [reason.SLUG]")
    return value


def _reason(name: str, slug: str, fields: object) -> Reason:
    where = f"reason {slug!r}"
    if not isinstance(fields, dict) or fields.keys() - {"title", "categories", "table7"}:
        raise InputError(f"{where} has other keys than title, categories and table7", path=name)
    if not slug.replace("_", "").isalnum() or not slug.isascii() or slug.lower() != slug:
        raise InputError(f"{where}: expected lower-case letters, digits and _", path=name)
    categories = fields.get("categories", [])
    if not isinstance(categories, list) or any(category not in CATEGORIES for category in categories):
        raise InputError(f"{where}: categories must be of {', '.join(CATEGORIES)}", path=name)
    title, table7 = fields.get("title", slug.replace("_", " ").capitalize()), fields.get("table7")
    if not isinstance(title, str) or not (table7 is None or isinstance(table7, str)):
        raise InputError(f"{where}: title is not text", path=name)
    return Reason(slug, title, tuple(categories), table7)


def _signature(name: str, number: int, fields: object, reasons: Mapping[str, Reason]) -> Signature:
    if not isinstance(fields, dict) or not isinstance(fields.get("id"), str) or not fields["id"]:
        raise InputError(f"signature {number} has no id", path=name)
    where = f"signature {fields['id']!r}"
    known = {field: kind for field, kind in _FIELDS.items() if field in fields}
    strangers = fields.keys() - _FIELDS.keys()
    if strangers:
        raise InputError(f"{where} has {sorted(strangers)[0]!r}", path=name, hint=f"known: {', '.join(_FIELDS)}")
    for field, kind in known.items():
        value = fields[field]
        if not isinstance(value, kind) or (isinstance(value, list) and not all(isinstance(v, str) for v in value)):
            words = {
                str: "text",
                float: "a number such as 0.8",
                bool: "true or false",
                int: "true, false or 2",
                list: "a list of texts",
            }[kind]
            raise InputError(f"{where}: {field} is not {words}", path=name)
    if fields.get("tier") not in tuple(Tier):
        raise InputError(f"{where}: tier {fields.get('tier')!r}", path=name, hint=f"one of {', '.join(Tier)}")
    tier, pattern, reason = Tier(fields["tier"]), fields.get("pattern", ""), fields.get("reason")
    if not 0 < len(pattern) <= _PATTERN_LIMIT or "\n" in pattern:
        raise InputError(f"{where}: pattern must be one line of 1 to {_PATTERN_LIMIT} characters", path=name)
    if (tier in CAUSES) != (reason is not None):
        raise InputError(f"{where}: tier {tier} {'needs a' if tier in CAUSES else 'gives no'} reason", path=name)
    if reason is not None and reason not in reasons:
        raise InputError(f"{where}: there is no reason {reason!r}", path=name, hint="define it with [reason.SLUG]")
    category = fields.get("category")
    if category is not None and any(word not in CATEGORIES for word in category.split("+")):
        raise InputError(f"{where}: category must be of {', '.join(CATEGORIES)}, joined by +", path=name)
    confidence = float(fields.get("confidence", 0.0))
    if "confidence" in fields and not 0 < confidence <= 1:
        raise InputError(f"{where}: confidence {confidence:g} is not above 0 and at most 1", path=name)
    texts = [tuple(fields.get(field, ())) for field in ("examples", "never")]
    if any(len(text) > _EXAMPLES_LIMIT or "\n" in text for group in texts for text in group):
        raise InputError(f"{where}: an example is one line of at most {_EXAMPLES_LIMIT} characters", path=name)
    return Signature(
        id=fields["id"],
        tier=tier,
        pattern=pattern,
        reason=reason,
        start=fields.get("start", False),
        caseless=fields.get("caseless", False),
        label=fields.get("label", False),
        fallback=int(fields.get("fallback", 0)),
        final=fields.get("final", False),
        category=category,
        confidence=confidence,
        examples=texts[0],
        never=texts[1],
        source=fields.get("source", ""),
    )


_FIELDS: dict[str, type] = {
    **dict.fromkeys(("id", "reason", "tier", "pattern"), str),
    **dict.fromkeys(("examples", "never"), list),
    **dict.fromkeys(("start", "caseless", "label", "final"), bool),
    "fallback": int,
    "confidence": float,
    **dict.fromkeys(("category", "source"), str),
}
