from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.ingest.joboutput.containertext import ContainerText, recognised_by

C1 = "container_1528800000000_0001_01_000001"
C2 = "container_e17_1528800000000_0001_02_000002"
OTHER = "container_1528800000000_0002_01_000001"
RULE = "=" * 66


def old(container: str, logs: dict[str, bytes]) -> bytes:
    """As Hadoop 2.7 prints it."""
    text = f"\n\nContainer: {container} on host_45454\n{RULE}\n".encode()
    for name, content in logs.items():
        head = (
            f"LogType:{name}\nLog Upload Time:Thu Jun 25 12:24:45 -0700 2015\nLogLength:{len(content)}\nLog Contents:\n"
        )
        text += head.encode() + content + f"\nEnd of LogType:{name}\n".encode()
    return text + b"\n"


def oldest(container: str, logs: dict[str, bytes]) -> bytes:
    """As Hadoop 2.2 prints it: blanks behind the colons, no mark at the end."""
    text = f"Container: {container} on host_45454\n{RULE}\n".encode()
    for name, content in logs.items():
        text += f"LogType: {name}\nLogLength: {len(content)}\nLog Contents:\n".encode() + content + b"\n"
    return text


def new(container: str, logs: dict[str, bytes]) -> bytes:
    """As Hadoop 3 prints it."""
    text = b""
    for name, content in logs.items():
        text += (
            f"Container: {container} on node01_38627\nLogAggregationType: AGGREGATED\n{RULE}\nLogType:{name}\n"
            f"LogLastModifiedTime:Sun Nov 22 01:56:18 +0000 2026\nLogLength:{len(content)}\nLogContents:\n"
        ).encode()
        end = f"End of LogType:{name}"
        text += content + f"\n{end}\n{'*' * (len(end) + 50)}\n\n".encode()
    return text


def read(text: bytes) -> list[tuple[str, str, bytes]]:
    return [(s.container, s.name, s.stream.read()) for s in ContainerText(io.BytesIO(text)).sections()]


@pytest.mark.parametrize("wording", [old, oldest, new])
def test_cuts_the_text_into_its_logs(wording: object) -> None:
    logs = {"stderr": b"Traceback\n", "stdout": b"", "syslog": "größe\r\n".encode() * 3, "x.log": b"\xff\0no end"}
    assert callable(wording)
    text = wording(C1, logs) + wording(C2, {"stderr": b"two\n"})
    assert recognised_by(text)
    expected = [(C1, name, content) for name, content in logs.items()] + [(C2, "stderr", b"two\n")]
    assert read(text) == expected
    assert read(b"24/01/01 INFO client.RMProxy: Connecting to rm\n" + text) == expected


def test_windows_line_ends() -> None:
    text = (
        new(C1, {"stderr": b"a\r\n"})
        .replace(b"LogContents:\n", b"LogContents:\r\n")
        .replace(b"LogLength:3\n", b"LogLength:3\r\n")
    )
    assert read(text) == [(C1, "stderr", b"a\r\n")]


def test_a_log_that_looks_like_the_text_itself_is_one_log() -> None:
    fake = new(OTHER, {"stderr": b"killed by an administrator\n"})
    inner = b"before\n" + new(C2, {"stderr": b"x"}) + fake + new(C1, {"stderr": b"x", "y": b"z"}) + b"after\n"
    for wording in (old, oldest, new):
        assert read(wording(C1, {"stderr": inner, "stdout": b"y"})) == [(C1, "stderr", inner), (C1, "stdout", b"y")]


def test_a_part_of_a_log_ends_at_its_mark() -> None:
    """As yarn logs -size prints it: the whole length, and a part of the bytes."""
    part = new(C1, {"stderr": b"a part\n"}).replace(b"LogLength:7\n", b"LogLength:700000\n")
    rest = new(C2, {"stderr": b"whole\n"})
    assert read(part + rest) == [(C1, "stderr", b"a part\n"), (C2, "stderr", b"whole\n")]
    last = part.replace(
        b"\n" + b"*" * 71 + b"\n\n", b".This log file belongs to a running container and so may not be complete.\n"
    )
    assert read(last) == [(C1, "stderr", b"a part\n")]


def test_output_of_another_application_does_not_end_a_part() -> None:
    part = new(C1, {"stderr": b"a\nEnd of LogType:stderr\n\n" + new(OTHER, {"x": b"y"})})
    (section,) = read(part.replace(b"LogLength:", b"LogLength:9", 1))
    assert section[0] == C1
    assert OTHER.encode() in section[2]


def test_a_text_that_is_cut_off_gives_what_is_there() -> None:
    text = new(C1, {"stderr": b"0123456789\n" * 100, "stdout": b"x\n"})
    for cut in range(0, len(text), 7):
        for container, _, content in read(text[:cut]):
            assert container == C1
            assert text.find(content) >= 0
    assert read(text[: text.index(b"\n0123") + 50])[0][2].startswith(b"0123456789\n")


def test_counts_the_lines_around_the_logs() -> None:
    text = ContainerText(io.BytesIO(new(C1, {"stderr": b"a\nb\n"})))
    for section in text.sections():
        section.stream.read()
    # eight lines before, and a blank one, the mark, its rule and another blank one behind it
    assert text.lines == 7 + 4


def test_unread_logs_are_passed_over() -> None:
    text = old(C1, {"a": b"x" * 3_000_000 + b"\n", "b": b"y"})
    assert [s.name for s in ContainerText(io.BytesIO(text)).sections()] == ["a", "b"]


@given(
    st.lists(st.tuples(st.sampled_from([C1, C2]), st.binary(max_size=200)), min_size=1, max_size=5),
    st.sampled_from([old, oldest, new]),
    st.integers(1, 300),
)
def test_any_bytes_come_out_as_they_went_in(parts: list[tuple[str, bytes]], wording: object, size: int) -> None:
    assert callable(wording)
    text = b"".join(wording(container, {"stderr": content}) for container, content in parts)
    found = []
    for section in ContainerText(io.BytesIO(text)).sections():
        content = b""
        while piece := section.stream.read(size):
            content += piece
        found.append((section.container, content))
    assert found == parts


@given(st.binary(max_size=600))
def test_any_text_can_be_read(data: bytes) -> None:
    recognised_by(data)
    read(data)
    read(new(C1, {"stderr": b"x"})[:90] + data)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"Container: x on y\n====\n",
        b"LogType:stderr\nLogLength:3\nLog Contents:\nabc",
        f"in {C1} on host\n".encode(),
    ],
)
def test_other_text_is_none(text: bytes) -> None:
    assert recognised_by(text) is None
