from __future__ import annotations

from tests.philly_log import attempt, job, load, log, new_store
from gpuctl.ingest.formats.philly_jobs import FORMAT


def test_x(tmp_path):
    with new_store(tmp_path) as store:
        sink = load(FORMAT, log(job("a", "2017-10-07 01:00:00", attempt("2017-10-07 01:00:30", "2017-10-07 01:10:00", ("m1", [0, 1]))), 5, job("b", "None")), store)
        print(sink.rejects, sink.rows("jobs"), sink.rows("attempts"), sink.rows("placements"), sink.rows("machines"), sink.rows("queues"))
