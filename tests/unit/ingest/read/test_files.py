from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import random
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest
import zstandard

from gpuctl.core.errors import InputError
from gpuctl.ingest.read import codecs
from gpuctl.ingest.read.codecs import CHUNK, Limits, codec_of, decompress
from gpuctl.ingest.read.files import Candidate, NotRead, Opener, plain_name, walk
from gpuctl.ingest.read.streams import HOLD_LIMIT, Raw

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_ZSTD = zstandard.ZstdCompressor(write_checksum=True)
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": _ZSTD.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
TEXT = "".join(f"{i},m{i % 97},{random.Random(i).random()}\n" for i in range(6_000)).encode()


def found(*paths: Path, opener: Opener | None = None) -> list[Candidate | NotRead]:
    used = opener or Opener()
    try:
        return list(walk(paths, used))
    finally:
        if opener is None:
            used.close()


def refusals(items: list[Candidate | NotRead]) -> dict[str, str]:
    return {i.shown.rsplit("/", 1)[-1].rpartition("!")[2]: i.why for i in items if isinstance(i, NotRead)}


def names(items: list[Candidate | NotRead]) -> list[str]:
    return [i.shown for i in items if isinstance(i, Candidate)]


def read(candidate: Candidate | NotRead, opener: Opener | None = None) -> tuple[bytes, tuple[int, str, bytes] | None]:
    assert isinstance(candidate, Candidate)
    with (opener or Opener()).open(candidate) as stream:
        return stream.read(), stream.damage


def tar_of(members: list[tuple[str | tarfile.TarInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name) if isinstance(name, str) else name
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


# ---- what is found


def test_walks_in_sorted_order_whatever_the_order_of_creation(tmp_path: Path) -> None:
    for name in ("b", "a/z", "a/y", "c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert [n.removeprefix(f"{tmp_path}/") for n in names(found(tmp_path))] == ["a/y", "a/z", "b", "c"]


def test_names_what_it_does_not_read(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (tmp_path / "secret").write_text("x")
    (logs / "log").write_text("x")
    (logs / ".hidden").write_text("x")
    (logs / "out").symlink_to(tmp_path / "secret")
    (logs / "updir").symlink_to(tmp_path)
    (logs / "broken").symlink_to(logs / "nothing")
    (logs / "round").symlink_to(logs / "round")
    (logs / "again").hardlink_to(logs / "log")
    os.mkfifo(logs / "pipe")
    items = found(logs)
    assert names(items) == [str(logs / "again")]
    assert refusals(items) == {
        ".hidden": "hidden",
        "out": "a link out of the directory",
        "updir": "a link out of the directory",
        "broken": "a broken link",
        "round": "a broken link",
        "log": f"the same as {logs}/again, which is read",
        "pipe": "a pipe",
    }


def test_follows_links_within_the_directory_once_and_never_in_circles(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "log").write_text("x")
    (tmp_path / "sub" / "up").symlink_to(tmp_path)
    (tmp_path / "current").symlink_to(tmp_path / "sub" / "log")
    items = found(tmp_path, tmp_path)
    assert names(items) == [str(tmp_path / "current")]
    assert isinstance(items[0], Candidate)
    assert items[0].path == str(tmp_path / "sub" / "log")


def test_leaves_out_the_store_itself_and_fails_for_a_path_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "db").write_bytes(b"x")
    assert refusals(list(walk([tmp_path], Opener(), exclude=[tmp_path / "db"]))) == {"db": "the trace store"}
    with pytest.raises(InputError, match="no such file"):
        found(tmp_path / "nope")


def test_names_that_are_no_utf8_can_be_stored(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"log\xff")).write_text("x")
    (item,) = found(tmp_path)
    assert isinstance(item, Candidate)
    assert item.path.encode("utf-8").endswith(b"log\\xff")
    assert read(item)[0] == b"x"


def test_a_file_swapped_for_a_link_after_it_was_found_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x")
    (item,) = found(tmp_path)
    (tmp_path / "log").unlink()
    (tmp_path / "log").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="cannot be opened"):
        read(item)


@pytest.mark.parametrize(
    ("name", "plain"), [("a/cluster_job_log.gz", "cluster_job_log"), ("x.ZST", "x"), ("a.csv", "a.csv"), (".gz", ".gz")]
)
def test_plain_name(name: str, plain: str) -> None:
    assert plain_name(name) == plain


# ---- compression


@pytest.mark.parametrize("suffix", [*PACK, "plain"])
def test_reads_compressed_files_by_their_bytes_and_hashes_what_lies_on_disk(tmp_path: Path, suffix: str) -> None:
    data = PACK.get(suffix, bytes)(TEXT)
    (tmp_path / "misnamed.csv").write_bytes(data)
    opener = Opener()
    (item,) = found(tmp_path)
    assert isinstance(item, Candidate)
    with opener.open(item) as stream:
        assert stream.read(10) == TEXT[:10]
        assert stream.digest() == (hashlib.sha256(data).hexdigest(), len(data))
    assert read(item) == (TEXT, None)


@pytest.mark.parametrize("suffix", PACK)
def test_reads_on_after_the_end_of_one_stream_and_padding(tmp_path: Path, suffix: str) -> None:
    pack = PACK[suffix]
    padding = bytes(8) if suffix in {"gz", "xz"} else b""
    (tmp_path / "log").write_bytes(pack(TEXT[:1000]) + pack(b"") + pack(TEXT[1000:]) + padding)
    assert read(found(tmp_path)[0]) == (TEXT, None)


@pytest.mark.parametrize("suffix", PACK)
def test_a_truncated_file_yields_its_intact_lines_with_a_warning(tmp_path: Path, suffix: str) -> None:
    data = PACK[suffix](TEXT)
    best = 0
    for cut in [*range(30, len(data), len(data) // 40), len(data) - 1]:
        (tmp_path / "log").write_bytes(data[:cut])
        out, damage = read(found(tmp_path)[0])
        assert damage is not None
        assert damage[1].startswith(f"truncated {codec_of(data)} stream")
        assert TEXT.startswith(out)
        assert out == b"" or out.endswith(b"\n")
        assert damage[0] == out.count(b"\n") + 1
        assert TEXT.startswith(out + damage[2])
        best = max(best, len(out))
    assert best > len(TEXT) // 3


@pytest.mark.parametrize("suffix", PACK)
def test_damage_in_the_middle_never_raises_and_is_always_reported(tmp_path: Path, suffix: str) -> None:
    data = PACK[suffix](TEXT)
    for at in range(12, len(data) - 12, len(data) // 30):
        (tmp_path / "log").write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        out, damage = read(found(tmp_path)[0])
        assert damage is not None or out == TEXT


@pytest.mark.parametrize("suffix", PACK)
def test_rubbish_after_the_end_is_reported(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "log").write_bytes(PACK[suffix](TEXT) + b"rubbish, and rather a lot of it")
    out, damage = read(found(tmp_path)[0])
    assert out == TEXT
    assert damage is not None
    assert "after the end" in damage[1]


def test_one_line_without_end_is_not_held_back(tmp_path: Path) -> None:
    text = random.Random(1).randbytes(HOLD_LIMIT).hex().encode()
    data = gzip.compress(text)
    (tmp_path / "log").write_bytes(data[: len(data) // 2])
    out, damage = read(found(tmp_path)[0])
    assert damage is not None
    assert len(out) > len(text) * 0.4
    assert text.startswith(out)


def test_a_byte_order_mark_is_taken_off(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\xef\xbb\xbfa\nb\n")
    assert read(found(tmp_path)[0])[0] == b"a\nb\n"


@pytest.mark.parametrize("suffix", PACK)
def test_bombs_are_refused_with_both_numbers_and_never_held_in_memory(tmp_path: Path, suffix: str) -> None:
    data = PACK[suffix](bytes(8 << 20))
    (tmp_path / "log").write_bytes(data)
    opener = Opener(Limits(ratio=200, floor=4 << 20))
    (item,) = found(tmp_path, opener=opener)
    assert isinstance(item, Candidate)
    with opener.open(item) as stream, pytest.raises(InputError, match=r"\d+ bytes decompress to more than \d+"):
        stream.drain()
    raw = Raw(io.BytesIO(data), "log")
    assert max(map(len, decompress(raw, codec_of(data)))) <= CHUNK
    assert read(item)[0] == bytes(8 << 20), "below the usual limits it is read"


def test_zstd_blocks_that_blow_up_come_one_at_a_time() -> None:
    block = ((1 << 17) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    frame = b"\x28\xb5\x2f\xfd\x00\x58" + block * 1000
    pieces = decompress(Raw(io.BytesIO(frame), "log"), "zstd")
    assert [len(next(pieces)) for _ in range(1000)] == [1 << 17] * 1000
    with pytest.raises(codecs.DamageError, match="truncated"):
        next(pieces)


# ---- archives


@pytest.mark.parametrize("suffix", [*PACK, "plain"])
def test_reads_members_of_tar_archives_in_any_order(tmp_path: Path, suffix: str) -> None:
    members = [("d/one", TEXT), ("d/two.gz", gzip.compress(TEXT[::-1])), ("three", b"3\n")]
    (tmp_path / "logs").write_bytes(PACK.get(suffix, bytes)(tar_of([(n, d) for n, d in members])))
    opener = Opener()
    items = found(tmp_path, opener=opener)
    assert names(items) == [f"{tmp_path}/logs!{n}" for n, _ in members]
    one, two, three = items
    assert isinstance(two, Candidate)
    assert two.name == "two"
    assert two.size == len(members[1][1])
    for item, text in ((three, b"3\n"), (one, TEXT), (two, TEXT[::-1]), (three, b"3\n"), (two, TEXT[::-1])):
        assert read(item, opener) == (text, None)
    with opener.open(two) as stream:
        assert stream.digest() == (hashlib.sha256(members[1][1]).hexdigest(), len(members[1][1]))
    opener.close()


def test_refuses_members_that_could_lead_out_and_writes_nothing(tmp_path: Path) -> None:
    def special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, target
        return info, b""

    archive = tmp_path / "a" / "evil.tar"
    archive.parent.mkdir()
    archive.write_bytes(
        tar_of(
            [
                ("/abs", b"x"),
                ("../up", b"x"),
                ("d/../../up2", b"x"),
                ("d\\..\\up3", b"x"),
                special("sym", tarfile.SYMTYPE, "/etc/passwd"),
                special("hard", tarfile.LNKTYPE, "ok"),
                special("fifo", tarfile.FIFOTYPE),
                special("dev", tarfile.CHRTYPE),
                ("d/.hid", b"x"),
                special("dir", tarfile.DIRTYPE),
                ("ok", b"fine\n"),
            ]
        )
    )
    before = sorted(tmp_path.rglob("*"))
    items = found(archive)
    assert names(items) == [f"{archive}!ok"]
    assert refusals(items) == {
        "abs": "its name is absolute",
        "up": "its name has .. in it",
        "up2": "its name has .. in it",
        "d\\..\\up3": "its name has .. in it",
        "sym": "a link to /etc/passwd: links in archives are not followed",
        "hard": "a link to ok: links in archives are not followed",
        "fifo": "a device, pipe or other special member",
        "dev": "a device, pipe or other special member",
        ".hid": "hidden",
    }
    assert sorted(tmp_path.rglob("*")) == before


def test_reads_zip_archives_and_refuses_the_same(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("d/one", TEXT)
        archive.writestr("../up", b"x")
        link = zipfile.ZipInfo("sym")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    items = found(tmp_path)
    assert names(items) == [f"{tmp_path}/a.zip!d/one"]
    assert refusals(items) == {"up": "its name has .. in it", "sym": "a link: links in archives are not followed"}
    opener = Opener()
    assert read(items[0], opener) == (TEXT, None)
    opener.close()


def test_a_cut_off_archive_gives_what_is_sound_and_is_reported(tmp_path: Path) -> None:
    data = gzip.compress(tar_of([("one", TEXT), ("two", TEXT[::-1]), ("three", TEXT)]))
    for cut in [*range(400, len(data), len(data) // 25), len(data) - 1]:
        (tmp_path / "a.tgz").write_bytes(data[:cut])
        opener = Opener()
        items = found(tmp_path, opener=opener)
        unread = [i for i in items if isinstance(i, NotRead)]
        whole = [read(i, opener) for i in items if isinstance(i, Candidate)]
        opener.close()
        assert len(unread) == 1, "the archive itself"
        assert unread[0].failed
        for (out, damage), text in zip(whole, (TEXT, TEXT[::-1], TEXT), strict=False):
            assert text.startswith(out)
            assert out == text or damage is not None


@pytest.mark.parametrize("cut", [512 + 1024, 512 + 700, 512 * 3 + 100])
def test_a_cut_off_plain_tar_is_reported_too(tmp_path: Path, cut: int) -> None:
    (tmp_path / "a.tar").write_bytes(tar_of([("one", bytes(range(256)) * 4), ("two", b"x")])[:cut])
    assert any(isinstance(i, NotRead) and i.failed for i in found(tmp_path))


def test_a_long_name_that_would_fill_memory_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 16))
    (item,) = found(tmp_path)
    assert isinstance(item, NotRead)
    assert "a header of 1099511627776 bytes" in item.why


def test_a_tar_bomb_is_refused_while_it_is_scanned(tmp_path: Path) -> None:
    (tmp_path / "a.tgz").write_bytes(gzip.compress(tar_of([("zeros", bytes(4 << 20)), ("two", b"x")])))
    opener = Opener(Limits(ratio=200, floor=1 << 20))
    items = found(tmp_path, opener=opener)
    opener.close()
    assert isinstance(items[-1], NotRead)
    assert items[-1].failed
    assert "decompress to more than" in items[-1].why


def test_states_where_a_file_lies_below_its_directory(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.log.gz").write_bytes(b"x")
    (tmp_path / "a" / "link").symlink_to(tmp_path / "a" / "y.log")
    (tmp_path / "a" / "y.log").write_text("x")
    with tarfile.open(tmp_path / "a" / "b.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "a" / "y.log", "./c/z.log.xz")
    inside = {c.inside for c in found(tmp_path) if isinstance(c, Candidate)}
    assert inside == {"a/x.log", "a/y.log", "a/c/z.log"}
    assert [c.inside for c in found(tmp_path / "a" / "y.log") if isinstance(c, Candidate)] == ["y.log"]
    assert [c.inside for c in found(tmp_path / "a" / "b.tar.gz") if isinstance(c, Candidate)] == ["c/z.log"]
