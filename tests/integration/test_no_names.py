"""Reports without names, whatever the names are: with its pseudonyms masked, a report does not depend on them.

One site, its users, jobs, machines and all else called in several ways; words that our own sentences use among them.
If a name were left anywhere, or an ordinary word were taken for one, the masked reports would differ.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from gpuctl.core.notes import KINDS
from tests.example_counts import SEARCHING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

MANY = 16
"""Names that the site needs."""
PLAIN = [f"ZQ{number}name" for number in range(MANY)]
WORDS = ["the", "12", "GPU", "of", "jobs", "machines", "wait", "queue", "node", "to", "hours", "fifo", "model", "1",
         "no", "a"]  # fmt: skip
HOSTILE = ["a.*b", "(x", "[y", "\\d+", "^$", "Zoë Ünïcode", "x" * 250, "user 12", "{path}", "{0}", "日本語", "%s", "$1",
           "<b>bold</b>", "=1+1", "-rf"]  # fmt: skip
SHAPE = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="|,[]/\"'"), min_size=1)
ORDINARY = st.sampled_from(["rows", "and", "were", "not", "in", "its", "attempts", "at", "is", "mean", "GPUs", "day"])
OURS = {"all", "other", "others", "unknown", "none", "not stated"}
"""Names of totals, which stay."""
SIZES = "sizes"
PHASES = (Phase.explicit, Phase.generate) if SEARCHING else (Phase.explicit,)
"""A site takes eight commands: names are drawn where faults are searched for, as in `make fuzz`."""
HEAD = "JobIDRaw|JobID|JobName|User|Account|Partition|State|Submit|Start|End|NNodes|AllocTRES|NodeList|ExitCode"


def site(names: list[str], folder: Path) -> None:
    """The logs of a site with these names: three users, two accounts, two queues, three machines, ten jobs."""
    users, accounts, queues = names[:3], names[3:5], names[5:7]
    # what Slurm can call a machine
    machines = [name if re.fullmatch(r"[\w.]+", name, re.ASCII) else f"m.{k}-{k}" for k, name in enumerate(names[7:10])]
    lines = [HEAD]
    for number in range(1, 31):
        user, machine = users[number % 3], machines[number % 3]
        day, minute = 1 + number // 10, number % 10
        state, code = ("FAILED", "1:0") if number % 3 == 1 and number > 6 else ("COMPLETED", "0:0")
        submit, start = f"2026-03-{day:02}T{minute:02}:00:00", f"2026-03-{day:02}T{minute:02}:{number:02}:00"
        lines.append(
            f"{number}|{number}|{names[10]}|{user}|{accounts[number % 2]}|{queues[number % 2]}|{state}|{submit}|"
            f"{start}|2026-03-{day:02}T{minute + 4:02}:00:00|1|gres/gpu={1 + number % 4}|{machine}|{code}"
        )
    lines += [f"31|31|x|{users[0]}|{accounts[0]}|{queues[0]}|{names[11]}|no time|||1||{machines[0]}|0:0"]
    (folder / "sacct.txt").write_text("\n".join(lines) + "\n")
    traffic = ["job_id,t,bytes"]
    cells = [f'"{name}"' for name in names[12:14]]
    traffic += [f"{cell},{t},{1000 if t % 60 < 30 else 10}" for cell in cells for t in range(0, 600, 5)]
    (folder / "traffic.csv").write_text("\n".join(traffic) + "\n")
    told = [
        "job_id,model,batch,samples,gpus,epochs",
        *(f'"{names[k]}","{names[14]}",8,80,1,9' for k in (12, 13, 15)),
    ]
    (folder / "open.csv").write_text("\n".join(told) + "\n")


def reports(gpuctl: Run, names: list[str], folder: Path) -> dict[str, str]:
    """All that is written and said for people who must not see the names."""
    folder.mkdir()
    site(names, folder)
    (folder / "key").write_text("0123456789abcdef0123456789abcdef\n")
    cluster = f"--cluster={names[2]}"

    def run(*words: object) -> None:
        gpuctl("--quiet", *words, cwd=folder)

    run("ingest", "sacct.txt", cluster, "--db", "s.duckdb")
    run("analyze", "s.duckdb", "--json", "--output", "a.json")
    run(
        "replay",
        "s.duckdb",
        "--policy",
        "fifo,srtf,slurm",
        "--limits-from",
        "steps",
        "--against",
        "recorded",
        "--json",
        "--output",
        "r.json",
    )
    run("predict", "runtime", "traffic.csv", "open.csv", "--json", "--output", "p.json")
    hidden = ["--anonymise-key", "key", "--anonymise-queues"]
    words = ["report", "a.json", "r.json", "p.json", *hidden, "--fail-if", "overview.jobs < 1"]
    done = gpuctl(*words, "--html", "x.html", "--markdown", "x.md", "--junit", "x.xml", "--all", cwd=folder)
    made = {"terminal": done.stdout + done.stderr}
    run(*words, "--json", "--output", "x.json")
    fresh = gpuctl("report", "sacct.txt", *hidden, "--format", "csv", "--table", "standout", cwd=folder)
    made["read again"] = fresh.stdout + fresh.stderr
    for name in ("a.json", "r.json", "p.json"):
        check_notes(json.loads((folder / name).read_text()))
    files = ("x.html", "x.md", "x.xml", "x.json")
    made |= {name: (folder / name).read_text() for name in files}
    sizes = [(folder / name).stat().st_size for name in ("sacct.txt", "traffic.csv", "open.csv")]
    for size in sizes:
        made = {kind: text.replace(f"{size:,}", str(size)) for kind, text in made.items()}
    return made | {SIZES: " ".join(map(str, sizes))}


def check_notes(found: dict[str, Any]) -> None:
    """See that every sentence of a result is a note: of a plain text nobody would know where names stand in it."""
    told = [
        found["names"]["cluster"],
        *found["names"]["warnings"],
        *(v for _, v in found["names"]["settings"].values()),
    ]
    assert len(found["names"]["settings"]) == len(found["settings"])
    for table in found["tables"].values():
        names = table["names"]
        told += [names["population"], *names["notes"], *(spans for _, spans in names["sentences"])]
    assert None not in told


class Plain(dict[str, str]):
    """Reports that are too long to be shown where a test fails."""

    def __repr__(self) -> str:
        return "the reports of the plain site"


def masked(text: str) -> Counter[str]:
    """The words of a report, without those of pseudonyms, some of them cut, and digests; rows may be in any order."""
    text = re.sub(r"<(script|style|svg).*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(rf"\b({'|'.join(KINDS)})-[a-z2-7]{{3,13}}\b", r"\1-*", text)
    text = re.sub(r"[0-9a-f]{8,64}", "", text)
    return Counter(re.findall(r"[\w*.%-]+", text))


def differences(mine: dict[str, str], theirs: dict[str, str]) -> dict[str, dict[str, int]]:
    """Words that one of two reports has more often, sizes of files aside."""
    sizes = {*mine[SIZES].split(), *theirs[SIZES].split()}
    found = {}
    for kind, text in mine.items():
        counts, others = masked(text), masked(theirs[kind])
        words = (counts | others).keys() - sizes
        found[kind] = {word: counts[word] - others[word] for word in words if counts[word] != others[word]}
    return found


@pytest.fixture(scope="module")
def plain(gpuctl: Run, tmp_path_factory: pytest.TempPathFactory) -> Plain:
    """The reports of the site under names that no text of ours has."""
    made = reports(gpuctl, PLAIN, tmp_path_factory.mktemp("plain") / "site")
    assert {kind: re.findall("ZQ.{,20}", text) for kind, text in made.items()} == {kind: [] for kind in made}
    assert all(re.search(r"(user|machine|cluster)-[a-z2-7]{13}", made[kind]) for kind in ("x.html", "x.json"))
    return Plain(made)


@settings(max_examples=5, deadline=None, phases=PHASES,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(
    names=st.lists(ORDINARY | SHAPE.filter(lambda text: text not in OURS), min_size=MANY, max_size=MANY, unique=True)
)
@example(names=WORDS)
@example(names=HOSTILE)
def test_no_report_depends_on_names(
    names: list[str], gpuctl: Run, plain: Plain, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = reports(gpuctl, names, tmp_path_factory.mktemp("site") / "site")
    assert differences(made, plain) == {kind: {} for kind in made}
