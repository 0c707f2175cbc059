"""The one pass over a log: what is kept, and where it says that it stands."""

from __future__ import annotations

import io
import random
import tracemalloc
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.joblogs import scan
from gpuctl.joblogs.scan import Scanner
from gpuctl.joblogs.table import LAST_WORDS, NOTHING, RELEASE, Reason, Signature, Table, Tier

if TYPE_CHECKING:
    from gpuctl.joblogs.evidence import Scan, Step

REASONS = {"boom": Reason("boom", "Boom", ("user",)), "bang": Reason("bang", "Bang", ("user",))}
SIGNATURES = (
    Signature("boom", Tier.ROOT, "it went boom", "boom"),
    Signature("bang", Tier.ERROR, r"Bang\w{1,20}: ", "bang", start=True),
    Signature("fine", Tier.HARMLESS, "but nobody cared"),
    Signature("any", Tier.ROOT, r"Bang\w{1,20}", "boom", start=True, fallback=True),
    Signature("over", Tier.RECOVERED, "second try worked"),
    Signature("frame", Tier.NOISE, "launcher says goodbye"),
)


@cache
def scanner() -> Scanner:
    return Scanner(Table(RELEASE, REASONS, {s.id: s for s in SIGNATURES}))


def found(text: str | bytes, **options: Any) -> Scan:
    return scanner().scan(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def test_lines_are_counted_from_one_and_stored_with_their_text() -> None:
    result = found("a\nb\nit went boom here\r\nc\n")
    assert [(m.signature, m.line_no, m.text, m.times) for m in result.matches] == [("boom", 3, "it went boom here", 1)]
    assert (result.lines, result.size) == (4, 25)


def test_a_last_line_without_an_end_is_one() -> None:
    result = found("a\nit went boom")
    assert (result.lines, result.matches[0].line_no) == (2, 2)


def test_an_empty_log() -> None:
    result = found("")
    assert (result.lines, result.size, result.telling) == (0, 0, [])
    assert [match.signature for match in result.matches] == [NOTHING]


def test_of_many_lines_the_first_and_the_last_are_stored_and_all_counted() -> None:
    result = found("".join(f"it went boom {n}\n" for n in range(1000)))
    assert [m.line_no for m in result.matches] == [1, 2, 3, 998, 999, 1000]
    assert {m.times for m in result.matches} == {1000}


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("BangError: x", None),
        ("[rank3]: BangError: x", 3),
        ("[3] BangError: x", 3),
        ("12: BangError: x", 12),
        ("[1,7]<stderr>:BangError: x", 7),
        ("2026-11-22 01:02:03,456 - ERROR - BangError: x", None),
        ("[2026-11-22 01:02:03] [rank 2] BangError: x", 2),
        ("(Worker pid=77) BangError: x", None),
        ("\x1b[31mBangError: x\x1b[0m", None),
        ("    | BangError: x", None),
    ],
)
def test_the_start_of_a_line_is_after_stamps_and_ranks(line: str, rank: int | None) -> None:
    (match,) = found(f"{line}\n").matches
    assert (match.signature, match.rank) == ("bang", rank)


def test_in_the_midst_of_a_line_a_start_signature_is_not_found() -> None:
    assert found("we catch BangError: x all the time\n").matches == []


def test_a_harmless_line_is_no_evidence_whatever_else_is_in_it() -> None:
    assert found("it went boom but nobody cared\n").matches == []


def test_a_class_of_errors_counts_only_if_nothing_nearer_is_found() -> None:
    assert [m.signature for m in found("BangError: x\nBangError without a colon\n").matches] == ["bang", "any"]


def test_stamps_are_read_in_their_zone() -> None:
    (match,) = found("2026-11-22T01:02:03.5Z it went boom\n").matches
    assert match.ts == 1795309323.5
    (match,) = found("2026-11-22 01:02:03 it went boom\n").matches
    assert match.ts == 1795309323.0


def test_ordinary_lines_after_a_match() -> None:
    text = (
        'it went boom\nordinary\n\n  indented\n  File "x.py", line 3, in f\nlauncher says goodbye\nit went boom\nend\n'
    )
    first, second = found(text).matches
    assert (first.ordinary_after, second.ordinary_after) == (2, 1)


def test_frames_with_a_rank_before_them_are_not_ordinary() -> None:
    frames = '[rank0]:   File "x.py", line 3, in f\n[rank0]:     call()\n[rank0]:   File "x.py", line 4, in g\n'
    text = f"it went boom\n{frames}"
    (match,) = found(text).matches
    assert match.ordinary_after == 0


def test_work_that_went_on() -> None:
    assert found("epoch 1 loss 0.5\nit went boom\nepoch 2 loss 0.4\n").matches[0].work_after
    assert not found("epoch 1 loss 0.5\nit went boom\n").matches[0].work_after
    assert found("it went boom\nsecond try worked\n").matches[0].work_after


_TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 3, in f\n    call()\n'


def test_an_exception_after_which_another_one_was_raised_was_caught() -> None:
    caught = f"{_TRACEBACK}BangError: a\n"
    first, second = found(f"{caught}going on\n{caught}").matches
    assert (first.work_after, second.work_after) == (True, False)
    # of a chain of exceptions the first is not caught for good
    assert not any(match.work_after for match in found(f"{caught}\n{caught}").matches)
    # another rank's exception says nothing of this one
    other = caught.replace("BangError", "[rank1]: BangError")
    assert not any(match.work_after for match in found(f"{caught}going on\n{other}").matches)


def test_a_bar_that_is_printed_once_more_at_the_end_is_no_work() -> None:
    bar = " 45%|####      | 45/100 [00:10<00:20, 9.9it/s]"
    assert not found(f"\r{bar}\nit went boom\n\r{bar}\n").matches[0].work_after


def test_progress_of_another_rank_is_no_sign_that_this_one_lives() -> None:
    text = "[rank1]: it went boom\n[rank0]: epoch 3 loss 0.5\n"
    assert not found(text).matches[0].work_after


def test_carriage_returns_part_pieces_of_one_line() -> None:
    result = found("a\n 1%|\r 2%|\rit went boom\rc\nBangError: x\n")
    assert [(m.signature, m.line_no, m.text) for m in result.matches] == [
        ("boom", 2, "it went boom"),
        ("bang", 3, "BangError: x"),
    ]


def test_steps_are_handed_on() -> None:
    steps: list[Step] = []
    result = found("epoch 1 loss 0.5\nepoch 2 loss 0.4\n", on_step=steps.append)
    assert [(s.line_no, s.epoch, s.value) for s in steps] == [(1, 1.0, 0.5), (2, 2.0, 0.4)]
    assert result.steps == 2


def test_without_a_signature_informative_lines_are_stored() -> None:
    text = "".join(f"step {n}\n" for n in range(200)) + "the widget could not be frobbed\nbye\nsee you\n"
    telling = found(text).telling
    assert [(m.line_no, m.text) for m in telling if m.signature is None] == [
        (201, "the widget could not be frobbed"),
        (202, "bye"),
        (203, "see you"),
    ]
    # no format marks it as an error, so it counts only where the program is known to have failed
    assert [(m.line_no, m.signature) for m in telling if m.signature is not None] == [(201, LAST_WORDS)]
    assert found("it went boom\n").telling == []


@pytest.mark.parametrize("cut", [1, 7, 64, 1000, 1 << 20])
def test_how_the_stream_is_cut_makes_no_difference(cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = random.Random(5)
    lines = [
        "it went boom",
        "BangError: x",
        "epoch 3 loss 0.5",
        "ordinary",
        "",
        "  indented",
        "second try worked",
        "x\ry",
    ]
    text = "\n".join(generator.choices(lines, k=400)).encode()
    whole = found(text)
    monkeypatch.setattr(scan, "CHUNK", cut)
    pieces = found(text)
    assert pieces == whole


def test_a_line_of_many_megabytes_is_examined_in_pieces() -> None:
    text = b"x" * 3_000_000 + b"it went boom" + b"y" * 3_000_000 + b"\nBangError: x\n"
    result = found(text)
    assert [(m.signature, m.line_no) for m in result.matches] == [("boom", 1), ("bang", 2)]
    assert "it went boom" in result.matches[0].text
    assert len(result.matches[0].text) <= 500
    assert (result.lines, result.long_lines) == (2, 1)


@pytest.mark.parametrize("place", [(1 << 20) - 6, (1 << 20) - 1, 1 << 20, (2 << 20) + 100])
def test_what_lies_across_two_pieces_of_a_long_line_is_found(place: int) -> None:
    assert found(b"x" * place + b"it went boom" + b"y" * (3 << 20)).matches[0].times == 1


def test_any_bytes_can_be_read() -> None:
    result = found(random.Random(1).randbytes(300_000) + b"\nit went boom \xff\xfe\x00\n")
    assert result.matches[-1].signature == "boom"


def test_stored_lines_do_not_grow_with_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "CHUNK", 1 << 17)
    block = b"it went boom\nordinary line of some length\nBangError: x\nepoch 3 loss 0.5\n" * 2_000

    class Endless(io.RawIOBase):
        left = 0

        def read(self, size: int = -1) -> bytes:
            self.left -= 1
            return block if self.left >= 0 else b""

    def peak(blocks: int) -> int:
        stream = Endless()
        stream.left = blocks
        tracemalloc.start()
        try:
            result = scanner().scan(stream)  # type: ignore[arg-type]
            assert result.size == blocks * len(block)
            assert {m.signature: m.times for m in result.matches} == dict.fromkeys(("boom", "bang"), 2_000 * blocks)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(3) < 1.2 * peak(1)


def test_of_very_many_steps_some_are_read_validations_and_the_last_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "ALL_STEPS", 100)
    monkeypatch.setattr(scan, "CHUNK", 4096)
    lines = [f"epoch {n // 100} step {n} loss 0.5" + " val_loss 0.4" * (n % 1000 == 999) for n in range(20_000)]
    steps: list[Step] = []
    result = found("\n".join(lines), on_step=steps.append)
    assert result.step_lines == 20_000
    assert {s.step for s in steps if s.step is not None and s.step < 100} == set(range(100))
    assert steps[-1].step == 19_999
    assert {s.step for s in steps if s.metric == "val_loss"} == set(range(999, 20_000, 1000))
