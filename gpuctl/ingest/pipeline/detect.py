"""Detects the format of a file by its name and its first bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError, bug_of, is_bug
from gpuctl.core.numbers import size
from gpuctl.ingest.core.format import Place
from gpuctl.ingest.pipeline.known_files import known_file
from gpuctl.ingest.read.files import Candidate, NotRead, reason, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gpuctl.ingest.core.format import Format
    from gpuctl.ingest.read.files import Opener

HEAD = 64 << 10
"""Decompressed bytes that formats decide by."""
LOG_FORMAT = "--log-format"
"""The option that states whose a file is."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LFS = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\r?\n(?:.*\n)*?size ([0-9]{1,20})\r?\n?")
"""https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md"""
_HTML = (b"<!doctype html", b"<html")
_APPLE_DOUBLE = b"\x00\x05\x16\x07"
"""RFC 1740, section 4: what macOS keeps of a file beside it, as ``._name``."""


@dataclass(frozen=True)
class Finding:
    """A file that one format recognised.

    Attributes:
        candidate: the file.
        format: its format.
        why: the reason for the recognition.
        sha256: of its bytes before decompression, if needed before loading.
        chosen: whether the user named the format, so that its content need not show it.
    """

    candidate: Candidate
    format: Format
    why: str
    sha256: str | None = None
    chosen: bool = False

    @property
    def order(self) -> tuple[int, str, int]:
        """Return its place in the order of loading: by format, then by path and by position in an archive."""
        return self.format.order, str(self.candidate.file), self.candidate.position or 0


def detect(
    name: str, head: bytes, formats: Sequence[Format], place: Place | None = None, chosen: Format | None = None
) -> tuple[Format | None, str, bool]:
    """Detect the format of a file.

    Args:
        name: its name without directories and compression suffix.
        head: its first `HEAD` bytes, decompressed.
        formats: the candidates.
        place: its location, if known; a format that claims it by location alone takes it.
        chosen: the format that the user named; preferred if several formats claim the file.

    Returns:
        (format or None, the reason for or against recognition, true if several formats claim it).
    """
    if place is not None:
        for fmt in formats:
            if fmt.claims is not None and (why := fmt.claims(place, head)) is not None:
                return fmt, why, False
    claims = [(f, why) for f in formats if (why := f.sniff(name, head)) is not None]
    if len(claims) > 1 and chosen is not None:
        claims = [claim for claim in claims if claim[0].name == chosen.name] or claims
    if len(claims) == 1:
        return *claims[0], False
    if claims:
        names = [f.name for f, _ in claims]
        return None, f"ambiguous: could be {' or '.join(names)}; {LOG_FORMAT} NAME selects one", True
    passed = (f.passes_over(name, head) for f in formats if f.passes_over is not None)
    return None, next((why for why in passed if why is not None), None) or known_file(head) or _stranger(head), False


def survey(
    paths: Sequence[Path],
    formats: Sequence[Format],
    opener: Opener,
    *,
    sizes: set[int],
    exclude: Sequence[Path] = (),
    chosen: Format | None = None,
) -> Iterator[Finding | NotRead]:
    """Survey some paths and identify every file found there.

    Args:
        paths: files and directories.
        formats: the candidates.
        opener: opens what is found.
        sizes: sizes in bytes of the files that are in the store; a recognised file of such a size, or as big
            as one before it, is hashed here, while it is open anyway.
        exclude: files that are not logs.
        chosen: the format that the user named: that of every file among the paths themselves, and in directories and
            archives of every file that several formats claim.

    Raises:
        InputError: one of the paths does not exist.
    """
    sizes = set(sizes)
    for found in walk(paths, opener, exclude=exclude):
        if isinstance(found, NotRead):
            yield found
            continue
        result = _identify(found, formats, opener, chosen, hash_it=found.size in sizes)
        if isinstance(result, Finding):
            sizes.add(found.size)
        yield result


def _identify(
    found: Candidate, formats: Sequence[Format], opener: Opener, chosen: Format | None, *, hash_it: bool
) -> Finding | NotRead:
    try:
        with opener.open(found) as stream:
            if chosen is not None and found.named:
                sha256 = stream.digest()[0] if hash_it else None
                return Finding(found, chosen, f"{LOG_FORMAT} {chosen.name}", sha256, chosen=True)
            head = stream.read(HEAD)
            fmt, why, failed = detect(found.name, head, formats, stream.place, chosen)
            if fmt is None:
                if stream.damage:
                    why = f"{why} ({stream.damage[1]})" if head else stream.damage[1]
                return NotRead(found.shown, why, failed)
            return Finding(found, fmt, why, stream.digest()[0] if hash_it else None)
    except InputError as error:
        return NotRead(found.shown, reason(error), failed=True)
    except BaseException as error:
        if not is_bug(error):
            raise
        return NotRead(found.shown, bug_of(error, "finding out what it is"), failed=True)


def _stranger(head: bytes) -> str:
    if not head:
        return "empty"
    if head.startswith(_UTF16):
        return "UTF-16 text; make it UTF-8 first: iconv -f UTF-16 -t UTF-8"
    if pointer := _LFS.match(head):
        real_size = size(int(pointer[1]))
        return f"a pointer of Git LFS: the file itself ({real_size}) is not here; run `git lfs pull` in the repository"
    if head.lstrip()[:14].lower().startswith(_HTML):
        return "a page of HTML, such as a server's error message; download the file again"
    if head.startswith(_APPLE_DOUBLE):
        return "a macOS AppleDouble file, which is not needed"
    if head[257:262] == b"ustar" or head[:4] == b"PK\3\4":
        return "an archive inside an archive: unpack it and name the directory"
    if head.lstrip().startswith(b'{\n"schema": ') and b'"gpuctl": ' in head[:200]:
        return "a result that gpuctl wrote: gpuctl report reads it"
    return "binary" if b"\0" in head else "no known format"
