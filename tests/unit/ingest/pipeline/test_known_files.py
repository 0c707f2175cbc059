"""Files that are recognised and not read: the message names what each is, and what to export instead."""

from __future__ import annotations

import pytest

from gpuctl.ingest.pipeline.detect import detect
from gpuctl.ingest.pipeline.known_files import KNOWN, Known
from gpuctl.ingest.pipeline.registry import built_in
from tests.example_files import example_files


@pytest.mark.parametrize("known", KNOWN, ids=[known.what for known in KNOWN])
def test_a_message_names_the_file_and_what_to_export(known: Known) -> None:
    found, why, ambiguous = detect("x", known.example, built_in())
    assert (found, ambiguous) == (None, False)
    assert why == f"{known.what}, which is not read; export instead: {known.instead}"


def test_no_sign_is_in_a_file_that_is_read_except_in_sreports_own() -> None:
    files = example_files()
    assert len(files) > 90
    wrong = {name: k.what for name, (_, data) in files.items() for k in KNOWN if k.sign.search(data[: 64 << 10])}
    # other reports of it have the same first lines
    assert set(wrong) == {"slurm-sreport"}
