"""Archives that decompress to far more than they take up, or make the reader of archives itself take up memory."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import random
import struct
import tarfile
import tracemalloc
import zipfile
from functools import cache
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.read.codecs import Limits
from gpuctl.ingest.read.files import Candidate, NotRead, Opener, walk

if TYPE_CHECKING:
    from pathlib import Path

METHODS = {"stored": 0, "deflated": zipfile.ZIP_DEFLATED, "bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}
ZEROS = bytes(12 << 20)


@cache
def text() -> bytes:
    """What bzip2 packs to a twentieth, without runs, of which a block holds far more."""
    draw, every = random.Random(0), bytes(range(241))
    return b"".join(draw.randbytes(9) + every for _ in range(32_000))


def zip_of(path: Path, members: dict[str, bytes], method: str = "deflated") -> None:
    with zipfile.ZipFile(path, "w", METHODS[method]) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def tar_of(path: Path, members: dict[str, bytes], mode: str) -> None:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def read(path: Path, limits: Limits) -> dict[str, int]:
    """All that there is in an archive, member by member, as the program reads it; how many bytes each has."""
    opener, sizes = Opener(limits), {}
    try:
        for item in walk([path], opener):
            if isinstance(item, NotRead):
                raise InputError(item.why)
            with opener.open(item) as stream:
                sizes[item.name] = sum(map(len, iter(lambda: stream.read(1 << 18), b"")))
                if stream.damage:
                    raise InputError(stream.damage[1])
    finally:
        opener.close()
    return sizes


@pytest.mark.parametrize("method", [m for m in METHODS if m != "stored"])
def test_a_zip_member_has_the_limits_of_a_gz_file_and_bounded_memory(tmp_path: Path, method: str) -> None:
    zip_of(tmp_path / "a.zip", {"text": text()}, method)
    tracemalloc.start()
    assert read(tmp_path / "a.zip", Limits()) == {"text": len(text())}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 << 20, "no member is decompressed at once"
    zip_of(tmp_path / "a.zip", {"zeros": ZEROS}, method)
    with pytest.raises(InputError, match=r"a\.zip!zeros: \d+ bytes decompress to more than \d+"):
        read(tmp_path / "a.zip", Limits(ratio=200, floor=8 << 20))


@pytest.mark.parametrize(
    ("kind", "pack"),
    [
        *(("zip", bytes), ("zip", bz2.compress), ("stored zip", bytes), ("stored zip", gzip.compress)),
        *(("tar", bytes), ("tar", lzma.compress), ("tar.gz", bytes), ("tar.gz", gzip.compress)),
    ],
)
def test_all_members_together_have_limits_too(tmp_path: Path, kind: str, pack: type[bytes]) -> None:
    """Each of them is too small to be refused by itself, compressed once or twice."""
    path = tmp_path / f"a.{kind.rsplit(maxsplit=1)[-1]}"
    members = {f"m{n}": pack(bytes(1 << 20)) for n in range(12)}
    if "zip" in kind:
        zip_of(path, members, "stored" if "stored" in kind else "deflated")
    else:
        tar_of(path, members, "w:gz" if "gz" in kind else "w")
    total = sum(read(path, Limits()).values())
    assert total == 12 << 20
    limits = Limits(ratio=50, floor=4 << 20)
    if total <= 50 * path.stat().st_size:
        assert read(path, limits)
        return
    with pytest.raises(InputError, match=r"a\.[a-z.]+: \d+ bytes decompress to more than \d+"):
        read(path, limits)


def test_what_really_is_large_is_read(tmp_path: Path) -> None:
    text = "".join(f"{i},{i * i % 9973}\n" for i in range(300_000)).encode()
    zip_of(tmp_path / "a.zip", {"log.gz": gzip.compress(text), "log": text})
    assert read(tmp_path / "a.zip", Limits(ratio=20, floor=1 << 18)) == {"log": len(text)}


def test_a_zip_may_not_ask_for_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    zip_of(path, {"m": b"text\n" * 100}, "lzma")
    data = bytearray(path.read_bytes())
    assert data[33] == 5, "bytes of the properties, after the local header and the name"
    data[36:40] = struct.pack("<I", 0xFFFFFFFF)
    path.write_bytes(data)
    with pytest.raises(InputError, match="needs 4095 MiB of memory to be decompressed; refused past 256"):
        read(path, Limits())


def test_a_zips_list_of_members_has_a_limit(tmp_path: Path) -> None:
    """Of a sparse file, whose last bytes say that nearly all of it is the list."""
    path, size = tmp_path / "a.zip", 1 << 31
    with path.open("wb") as file:
        file.write(b"PK\3\4")
        file.truncate(size)
        file.seek(size)
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, size - 100, 100, 0))
    tracemalloc.start()
    with pytest.raises(InputError, match="a list of members of more than 64 MiB"):
        read(path, Limits())
    assert tracemalloc.get_traced_memory()[1] < 200 << 20
    tracemalloc.stop()


def test_damaged_members_of_all_kinds_are_reported(tmp_path: Path) -> None:
    for method in METHODS:
        path = tmp_path / f"{method}.zip"
        zip_of(path, {"m": bytes(range(256)) * 400}, method)
        whole = path.read_bytes()
        for at in range(31, len(whole), max(1, len(whole) // 80)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
            with contextlib.suppress(InputError):  # and no error of zlib, bz2, lzma, struct …
                read(path, Limits())


def test_long_names_upon_long_names_and_sparse_maps_are_damage(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 512
    (tmp_path / "a.tar").write_bytes((info.tobuf(tarfile.GNU_FORMAT) + bytes(512)) * 5000)
    with pytest.raises(InputError, match=r"damaged archive: .*recursion"):
        read(tmp_path / "a.tar", Limits())
    sparse = tarfile.TarInfo("holes")
    sparse.size = 1 << 20
    sparse.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "5"}
    with tarfile.open(tmp_path / "b.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(sparse, io.BytesIO(b"99999999999\n" + b"1\n" * (1 << 19)))
        archive.addfile(tarfile.TarInfo("next"))
    opener = Opener()
    items = list(walk([tmp_path / "b.tar"], opener))
    opener.close()
    assert [type(item) for item in items] == [NotRead, Candidate]
    assert isinstance(items[0], NotRead)
    assert items[0].why == "a sparse member"
