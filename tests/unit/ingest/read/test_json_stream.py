from __future__ import annotations

import io
import json
import re
import tracemalloc

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.read import json_stream
from gpuctl.ingest.read.json_stream import CUT_OFF, NOT_CLOSED, NOT_JSON, NOT_UTF8, TOO_DEEP, TOO_LONG, elements

START = re.compile(r'\{\s{0,32}"(?!inner")[^"]{1,64}"')
GOOD = '{"id": 1, "inner": [{"inner": "x"}]}'


def read(data: str | bytes, **settings: int) -> list[tuple[int, object, str | None]]:
    stream = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return [(e.line_no, e.value, e.fault) for e in elements(stream, START, **settings)]


def faults(data: str | bytes, **settings: int) -> list[str | None]:
    return [fault for _, _, fault in read(data, **settings)]


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1}, {"a": 2}]',
        '[\n  {"a": 1},\n  {"a": 2}\n]\n',
        '[\r\n  {"a": 1},\r\n  {"a": 2}\r\n]\r\n',
        '{"a": 1}\n{"a": 2}\n',
        '{"a": 1}\n{"a": 2}',
        '{"a": 1}{"a": 2}',
        '\ufeff[{"a": 1}, {"a": 2}]',
        '\ufeff{"a": 1}\n\n\n{"a": 2}',
        '[{"a": 1}]\n[{"a": 2}]\n',
        '[{"a": 1},, {"a": 2},]',
    ],
)
def test_arrays_and_lines_of_objects_are_read(text: str) -> None:
    assert [value for _, value, _ in read(text)] == [{"a": 1}, {"a": 2}]
    assert faults(text) == [None, None]


def test_line_numbers_are_those_on_which_elements_start() -> None:
    text = '[\n{"a":\n\n1}\n,\n\n{"a": 2}, {"a": 3},\n {"a": oops},\n{"b": 1}]'
    assert [(line, fault) for line, _, fault in read(text)] == [
        (2, None),
        (7, None),
        (7, None),
        (8, NOT_JSON),
        (9, None),
    ]


def test_an_empty_array_has_no_elements() -> None:
    assert read("[]") == []
    assert read(" [ \n ] \n") == []


@pytest.mark.parametrize("text", ["", "  \n\n", "\ufeff"])
def test_an_empty_file_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError, match="nothing in this file"):
        read(text)


@pytest.mark.parametrize(
    "bad",
    [
        '{"id": 1, "inner": [}',
        '{"id": 1, "inner": ]}',
        '{"id": 1 "x": 2}',
        '{"id": "no end, "inner": [{"inner": "x"}]}',
        '{"id": "x", "inner": [{"inner": "x"}]',
        '"id": "x", "inner": [{"inner": "x"}]}',
        '{"id": tru}',
        '{"id": "\x00"}',
        '{"id": "line\nend"}',
        "{'id': 1}",
        '{"id": 1}}}',
        '{"id": "\\x"}',
        "\x00\x00\x00",
        "} garbage {",
        '{"id": ' + "9" * 5000 + "}",
    ],
)
@pytest.mark.parametrize("between", [", ", ",\n", "\n"])
def test_one_damaged_stretch_is_one_fault_and_its_neighbours_are_read(bad: str, between: str) -> None:
    text = f"[{between.join([GOOD, GOOD, bad, GOOD, GOOD])}]"
    found = [fault for fault in faults(text) if fault]
    assert found == [NOT_JSON]
    assert [value for _, value, fault in read(text) if not fault][-2:] == [json.loads(GOOD)] * 2
    assert len([1 for _, _, fault in read(text) if not fault]) >= 4


def test_invalid_utf8_faults_only_the_object_it_is_in() -> None:
    data = b'[{"id": "a"}, {"id": "\xff\xfe"}, {"id": "\xc3\xa9"}]'
    assert faults(data) == [None, NOT_UTF8, None]
    assert read(data)[2][1] == {"id": "é"}
    raw = [e.raw for e in elements(io.BytesIO(data), START)]
    assert raw[1] == b'{"id": "\xff\xfe"}'


@pytest.mark.parametrize("length", range(1, len(GOOD)))
def test_a_file_cut_off_inside_an_object_has_one_fault(length: int) -> None:
    text = f"[{GOOD}, {GOOD[:length]}"
    assert faults(text) == [None, CUT_OFF]


@pytest.mark.parametrize("tail", ["", ",", "\n", ",\n  "])
def test_an_array_without_its_end_has_one_fault(tail: str) -> None:
    assert read(f"[{GOOD},\n{GOOD}{tail}")[2][2] == NOT_CLOSED
    assert faults("[") == [NOT_CLOSED]


@pytest.mark.parametrize("deep", ['{"id": ' * 3000 + "1" + "}" * 3000, '{"id": ' + "[" * 200_000 + "]" * 200_000 + "}"])
def test_deep_nesting_is_one_fault(deep: str) -> None:
    assert faults(f"[{GOOD}, {deep}, {GOOD}]") == [None, TOO_DEEP, None]


def test_deep_nesting_that_never_closes_does_not_take_quadratic_time() -> None:
    found = faults('[{"id": ' * 300_000)
    assert set(found) <= {TOO_DEEP, CUT_OFF, NOT_CLOSED}
    assert len(found) <= 3


def test_an_object_over_the_limit_is_skipped_without_being_held() -> None:
    class Long(io.RawIOBase):
        def __init__(self) -> None:
            self.parts = [b'[{"id": "', *[b"a" * 2**20] * 48, b'"}, {"id": 7}]']

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            part = self.parts.pop(0) if self.parts else b""
            if len(part) > size:
                self.parts.insert(0, part[size:])
            return part[:size]

    tracemalloc.start()
    try:
        found = [(e.value, e.fault) for e in elements(Long(), START)]  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == [(None, TOO_LONG), ({"id": 7}, None)]
    assert peak < 6 * json_stream.OBJECT_LIMIT


def test_an_object_over_the_limit_that_is_whole_is_a_fault_too() -> None:
    assert faults('[{"id": "aaaaaaaaaaaaaaaaaaaaaaa"}, {"id": 2}]', limit=20) == [TOO_LONG, None]


def test_every_split_of_the_stream_gives_the_same() -> None:
    data = f'\ufeff[{GOOD},\n{{"id": bad}},\n{{"id": "é\\u00e9"}}, 12345, [1, 2], "x", null, -1.5e3]'.encode()
    whole = read(data)
    assert len(whole) == 8

    class Dribble(io.BytesIO):
        step = 1

        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, self.step))

    for step in (1, 2, 3, 7, 50):
        stream = Dribble(data)
        stream.step = step
        assert [(e.line_no, e.value, e.fault) for e in elements(stream, START)] == whole


def test_a_million_blanks_and_commas_are_passed_over() -> None:
    assert faults("[" + " ,\n" * 700_000 + GOOD + "]") == [None]


def test_raw_is_the_beginning_of_the_element() -> None:
    text = '[{"id": "' + "x" * 2000 + '"}, {"id": oops' + "y" * 2000 + "}]"
    raws = [e.raw for e in elements(io.BytesIO(text.encode()), START)]
    assert raws[0] == text[1:501].encode()
    assert raws[1].startswith(b'{"id": oopsyyy')
    assert len(raws[1]) == 500
