"""Whatever a job prints: the scan ends, counts right and says the same however the bytes come."""

from __future__ import annotations

import io
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuctl.core.states import State
from gpuctl.joblogs import last_lines, scan
from gpuctl.joblogs.classify import classify
from gpuctl.joblogs.evidence import TEXT_LIMIT, Facts, Match
from gpuctl.joblogs.table import NO_SIGNATURE, NOTHING, NOTHING_LOGGED
from tests.example_counts import examples
from tests.signatures import scanner, table

TABLE = table()
EXAMPLES = [line for signature in TABLE.signatures.values() for line in signature.examples]
LINES = st.one_of(
    st.sampled_from(EXAMPLES),
    st.text(max_size=60),
    st.sampled_from(["", "  indented", "epoch 3/10 loss 0.25", " 45%|###   | 45/100 [00:10<00:20,  9.9it/s]", "done"]),
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])
LOGS = st.lists(st.tuples(LINES, ENDS), max_size=40).map(lambda parts: "".join(a + b for a, b in parts).encode())
FACTS = st.one_of(
    st.none(),
    st.builds(
        Facts,
        state=st.one_of(st.none(), st.sampled_from(list(State))),
        exit_code=st.one_of(st.none(), st.integers(0, 255)),
        exit_signal=st.one_of(st.none(), st.integers(0, 64)),
    ),
)


class _Pieces(io.RawIOBase):
    """Hands out bytes in pieces of a given size, whatever is asked for."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size = data, size

    def read(self, size: int = -1) -> bytes:
        piece, self._data = self._data[: self._size], self._data[self._size :]
        return piece


@settings(max_examples=examples(150), deadline=None)
@given(LOGS, st.integers(1, 200))
def test_the_scan_does_not_depend_on_how_the_bytes_come(log: bytes, size: int) -> None:
    whole = scanner().scan(io.BytesIO(log))
    assert scanner().scan(_Pieces(log, size)) == whole  # type: ignore[arg-type]
    assert (whole.size, whole.lines) == (len(log), log.count(b"\n") + (log != b"" and not log.endswith(b"\n")))


@settings(max_examples=examples(150), deadline=None)
@given(st.one_of(LOGS, st.binary(max_size=2000)))
def test_stored_lines_are_bounded_and_come_from_the_log(log: bytes) -> None:
    result = scanner().scan(io.BytesIO(log))
    found: dict[str | None, int] = {}
    for match in (*result.matches, *result.telling):
        assert (match.line_no == 0) <= (match.signature == NOTHING and log == b"")
        assert 0 <= match.line_no <= result.lines
        assert len(match.text) <= TEXT_LIMIT
        assert match.ordinary_after <= result.lines * 3 + log.count(b"\r")
        found[match.signature] = found.get(match.signature, 0) + 1
    assert all(count <= 2 * scan.MOST_HITS for signature, count in found.items() if signature is not None)
    assert found.get(None, 0) <= last_lines.TELLING


@settings(max_examples=examples(150), deadline=None)
@given(LOGS, FACTS, st.randoms())
@example(b"=>> PBS: job killed: walltime 3605 exceeded limit 3600", Facts(texts=("",)), Random(0))
@example(b"PBS: job killed: walltime 3605\rPBS: job killed: mem 21kb exceeded limit 20kb\n", None, Random(1))
def test_a_verdict_is_always_one_of_the_tables_and_no_matter_of_order(
    log: bytes, facts: Facts | None, rng: Random
) -> None:
    result = scanner().scan(io.BytesIO(log))
    matches: list[Match] = [*result.matches, *result.telling]
    verdict = classify(matches, TABLE, facts)
    assert 0 <= verdict.confidence <= 1
    assert (verdict.reason in TABLE.reasons) == (verdict.failed is not False)
    assert verdict.failed is not None or not _tells_how_it_ended(facts)
    if verdict.reason not in {None, NO_SIGNATURE, NOTHING_LOGGED}:
        assert verdict.category
    if verdict.signature is not None:
        assert verdict.evidence in {match.text for match in matches}
    shuffled = list(matches)
    rng.shuffle(shuffled)
    assert classify(shuffled, TABLE, facts).reason == verdict.reason


def _tells_how_it_ended(facts: Facts | None) -> bool:
    # the scheduler's texts may be of anything: only its state and codes say whether an attempt failed
    return facts is not None and (facts.state not in {None, State.UNKNOWN} or facts[1:3] != (None, None))
