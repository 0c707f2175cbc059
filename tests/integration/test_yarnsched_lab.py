"""Hadoop's schedulers, run here, decide as they did when tests/fixtures/yarnsched was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from labs.yarn import jars
from labs.yarnsched import lab
from labs.yarnsched.check import Recording, table
from tests import lab_requirements

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "yarnsched"


@pytest.mark.lab
@pytest.mark.slow
def test_the_real_schedulers_decide_as_recorded(tmp_path: Path) -> None:
    lab_requirements.skip_or_fail(jars.missing())
    path = jars.classpath(jars.NEWEST, download=False)
    classes = lab.compile_driver(tmp_path, path)
    for name in ("cs-limits", "cs-preempt12-whole", "fs-reserve", "fs-preempt-plain"):
        lab.run(lab.SCENARIOS[name], tmp_path / name, classes, path)
        assert table(tmp_path / name / "events.csv") == Recording.read(FIXTURES / name).events, name
        assert table(tmp_path / name / "shares.csv") == Recording.read(FIXTURES / name).shares, name
