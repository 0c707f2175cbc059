"""What ``gpuctl explain`` finds out of a store, and how it says it."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze.explain import explain
from gpuctl.analyze.options import Options
from gpuctl.core.errors import UsageError
from gpuctl.reports.explain import as_json, blocks, print_explanation, ranges, render_explanation, timeline
from gpuctl.store.database import Store
from tests.unit.analyze.failure_store import SIGNATURES, Site, at, example

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.job_explanation import Explanation

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e"


@pytest.fixture(scope="module")
def signatures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("signatures") / "own.toml"
    path.write_text(SIGNATURES)
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = example(tmp_path_factory.mktemp("store") / "t.duckdb")
    with Store(path, write=True) as opened:
        site = Site.__new__(Site)
        site.store = opened
        # from noon on it waits for 8 GPUs on one machine: gang holds those of m2, and one job is on each of the others
        site.job("late", ("failed", 30, 50), gpus=8, on=("m2",), name=HOSTILE, array_job="77", array_task="3")
        site.log(
            "late", 0, ("t_gpu_oom", 12, f"CUDA out of memory {HOSTILE}"), ("t_syntax", 20, "SyntaxError: invalid")
        )
        site.log("late", 0, stream="stdout")
        site.insert("queue_samples", job="late", ts=at(5), reason="Resources", state="PENDING")
        site.insert("queue_samples", job="late", ts=at(6), reason="Resources", state="PENDING")
        for minute in range(30, 50):
            # the job's own GPUs 0 to 7
            site.insert("gpu_samples", ts=at(minute), machine="m2", util=[50.0] * 7 + [0.0])
        for line, (epoch, loss) in enumerate(((1, 0.9), (2, 0.4), (3, 0.5)), 30):
            site.insert(
                "progress", job="late", attempt=0, stream="stdout", line_no=line, epoch=epoch, epochs=10, loss=loss,
                metric="loss",
            )  # fmt: skip
        for job, state in (("never", "pending"), ("gone", "killed")):
            site.insert("jobs", job=job, state=state, submit_ts=at(0), gpus=4, attempts=0, quirks=[], queue="q")
    return path


def told(store: Path, job: str, signatures: Path, **more: object) -> Explanation:
    with Store(store) as opened:
        return explain(opened, job, Options(signatures=(signatures,)), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def late(store: Path, signatures: Path) -> Explanation:
    return told(store, "late", signatures)


def text(found: Explanation, width: int = 80) -> str:
    out = io.StringIO()
    print_explanation(found, console_width=width, color=False, file=out)
    return out.getvalue()


def test_why_it_failed(late: Explanation) -> None:
    [tried] = late.attempts
    assert tried.cause is not None
    assert (tried.cause.reason, tried.cause.line_no, tried.cause.path) == ("gpu_out_of_memory", 12, "late.stderr")
    assert tried.cause.others == ("syntax_error",)
    assert [(line.line_no, line.reason) for line in tried.lines] == [(12, "GPU out of memory"), (20, "Syntax error")]
    assert [log.stream for log in tried.logs] == ["stderr", "stdout"]


def test_why_it_waited(late: Explanation) -> None:
    wait = late.attempts[0].wait
    assert wait is not None
    assert wait.seconds == 1800
    assert sum(part.seconds for part in wait.parts) == 1800
    assert all(part.low_s <= part.seconds <= part.high_s for part in wait.parts)
    # gang held m2 until 12:20 and again to 14:20; the machines m1 and m3 never had 8 GPUs free together
    assert wait.main in {None, max(wait.parts, key=lambda part: part.seconds).cause}
    [sampled] = wait.sampled
    assert (sampled.reason, sampled.samples, sampled.eligible) == ("Resources", 2, True)


def test_where_it_ran_and_with_whom(late: Explanation) -> None:
    [place] = late.attempts[0].places
    assert (place.machine, place.gpus, place.machine_gpus, place.others) == ("m2", 8, 8, 1)
    [other] = place.longest
    assert (other.job, other.gpus, other.seconds) == ("gang", 8, 1200)


def test_how_it_used_its_gpus(late: Explanation) -> None:
    use = late.attempts[0].use
    assert use is not None
    assert (use.samples, use.mean_pct, use.idle_pct, use.whole_machines) == (160, 43.75, 12.5, True)
    gpus = late.attempts[0].gpus_over_time
    assert [gpu.gpu for gpu in gpus] == list(range(8))
    assert sum(gpu.mean_pct for gpu in gpus) / 8 == pytest.approx(43.75)
    assert all(set(gpu.pct) <= {gpu.mean_pct, None} for gpu in gpus)
    drawn = [line for line in text(late, 120).splitlines() if "m2 GPU" in line]
    assert [line.count("│") for line in drawn] == [2] * 8
    many = replace(late, attempts=(replace(late.attempts[0], gpus_over_time=gpus * 3),))
    assert "the 8 least used of 24 GPUs" in text(many, 120)


def test_training_progress(late: Explanation) -> None:
    [training] = late.attempts[0].training
    assert (training.points, training.first, training.lowest, training.last) == (3, 0.9, 0.4, 0.5)
    assert (training.last_epoch, training.epochs, training.line_no, training.stream) == (3, 10, 32, "stdout")


def test_retries(store: Path, signatures: Path) -> None:
    found = told(store, "twice", signatures)
    assert [tried.cause.reason if tried.cause else None for tried in found.attempts] == ["syntax_error"] * 2
    assert "attempt 1: failed after 10 min, 0.167 GPU-h: Syntax error again" in text(found)


def test_an_array_task_is_found_by_its_own_name(store: Path, signatures: Path) -> None:
    found = told(store, "77_3", signatures)
    assert (found.job, found.asked) == ("late", "77_3")
    assert "77_3 (late)" in text(found)


def test_a_job_that_never_started(store: Path, signatures: Path) -> None:
    found = told(store, "never", signatures)
    assert found.attempts == ()
    assert found.never_started is not None
    assert found.never_started.still_waits
    assert "It has been waiting for" in text(found)
    # no source tells when it was killed, nor any attempt
    gone = told(store, "gone", signatures)
    assert gone.never_started is not None
    assert gone.never_started.seconds is None
    assert "It waited without starting, since 2026-03-02 12:00" in text(gone)
    assert timeline(gone) is None
    assert "when it gave up is unknown" in render_explanation(gone)


def test_a_job_that_did_not_fail_reports_nothing_of_failures(store: Path, signatures: Path) -> None:
    assert "why-failed" not in {block.name for block in blocks(told(store, "fine", signatures))}


@pytest.mark.parametrize(("job", "near"), [("twic", "twice"), ("77", "77_3")])
def test_near_names_are_named(store: Path, signatures: Path, job: str, near: str) -> None:
    with pytest.raises(UsageError, match="has no job") as refused:
        told(store, job, signatures)
    assert near in (refused.value.hint or "")


@pytest.mark.parametrize("width", [40, 60, 100])
def test_the_terminal_cuts_nothing_and_keeps_its_width(late: Explanation, width: int) -> None:
    shown = text(late, width)
    assert all(len(line) <= width for line in shown.splitlines())
    assert "\x1b" not in shown
    assert "\\x1b[2J\\u202e" in shown.replace("\n", "").replace(" ", "")
    for word in ("GPU out of memory", "stderr", "line 12", "m2", "gang", "epoch 3 of 10"):
        assert word.replace(" ", "") in shown.replace("\n", "").replace(" ", "")


class Page(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_escapes_logs_and_needs_nothing_else(late: Explanation) -> None:
    page = render_explanation(late)
    tags = Page(page).tags
    assert sum(tag == "script" for tag, _ in tags) == 2
    assert "&lt;script&gt;alert(1)" in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    for tag, attributes in tags:
        assert tag not in {"link", "img", "iframe", "form", "base"}
        assert (attributes.get("href") or "#").startswith("#")
    targets = {attributes["id"] for _, attributes in tags if attributes.get("id")}
    assert {(a["href"] or "")[1:] for t, a in tags if t == "a"} <= targets


def test_json_is_the_record(late: Explanation) -> None:
    made = json.loads(json.dumps(as_json(late)))
    assert made["schema"] == 1
    assert made["attempts"][0]["cause"]["reason"] == "gpu_out_of_memory"
    assert made["facts"]["submit_ts"] == "2026-03-02T12:00:00Z"


def test_words() -> None:
    assert ranges((0, 1, 2, 3, 6)) == "0-3, 6"
    assert ranges(()) == ""


def test_two_clusters_with_such_a_job(tmp_path: Path, signatures: Path) -> None:
    path = example(tmp_path / "t.duckdb")
    with Store(path, write=True) as opened:
        opened.execute("INSERT INTO clusters SELECT * REPLACE ('d' AS cluster) FROM clusters")
    assert told(path, "gang", signatures).cluster == "c"
    with Store(path, write=True) as opened:
        opened.execute("INSERT INTO job_rows SELECT * REPLACE ('d' AS cluster) FROM jobs WHERE job = 'gang'")
    with pytest.raises(UsageError, match="2 clusters"):
        told(path, "gang", signatures)


def test_lines_of_a_job_that_passed_are_no_reason(store: Path, signatures: Path) -> None:
    found = told(store, "gang", signatures)
    assert [tried.cause is not None for tried in found.attempts] == [True, False]
    passed = replace(found, attempts=(replace(found.attempts[1], lines=found.attempts[0].lines),))
    [block] = [block for block in blocks(passed) if block.name == "why-failed"]
    assert block.title == "Lines of its logs"
    assert block.items[0].text == "It did not fail; scheduler state: completed."


def test_the_end_of_a_name_is_enough_where_only_one_ends_so(tmp_path: Path, signatures: Path) -> None:
    path = tmp_path / "s.duckdb"
    with Store(path, write=True) as store:
        site = Site(store)
        site.machine("m1")
        for job in ("application_1_0007", "application_1_0017", "0017"):
            site.job(job, ("completed", 0, 10))
    assert told(path, "07", signatures).job == "application_1_0007"
    assert told(path, "0017", signatures).job == "0017", "its own name goes before the end of another one's"
    with pytest.raises(UsageError, match=r"7 may be job 0017 or application_1_0007 or application_1_0017$"):
        told(path, "7", signatures)


def test_a_job_stands_next_to_those_like_it(tmp_path: Path, signatures: Path) -> None:
    path = tmp_path / "s.duckdb"
    with Store(path, write=True) as store:
        site = Site(store)
        site.machine("m1")
        site.job("own", ("failed", 30, 90), gpus=2)
        for k in range(1, 10):
            site.job(f"like{k}", ("failed" if k == 9 else "completed", k, 10 * k + k), gpus=2)
        site.job("larger", ("completed", 500, 1000), gpus=4)
        site.job("bobs", ("completed", 500, 1000), gpus=2, user="bob")
    similar = told(path, "own", signatures).similar
    assert similar is not None
    assert (similar.alike, similar.jobs, similar.failed) == ({"user": "ann", "gpus": 2.0}, 9, 1)
    wait, run = similar.measures
    assert (wait.name, wait.own, wait.p10, wait.p50, wait.p90) == ("wait_s", 1800, 108, 300, 492)
    assert (run.name, run.own, run.p50, run.known) == ("run_s", 3600, 3000, 9)
    assert "Wait to the first start: 30 min; similar jobs: median 5 min" in text(told(path, "own", signatures), 200)
    assert told(path, "larger", signatures).similar is None


def test_the_page_draws_when_it_waited_and_ran(late: Explanation) -> None:
    drawn = timeline(late)
    assert drawn is not None
    bars = [(name, bar.kind, bar.start_pct, bar.width_pct) for name, bars in drawn.rows for bar in bars]
    # one place follows on the other, from the left edge to the right one
    assert bars[0][2] == 0
    assert bars[-1][2] + bars[-1][3] == pytest.approx(100)
    assert render_explanation(late).count('<rect class="running"') == sum(kind == "running" for _, kind, _, _ in bars)
