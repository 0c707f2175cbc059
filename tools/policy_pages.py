"""Writes what the code says of each policy into docs/reference: policies/NAME.md, and their list, policies.md.

python tools/policy_pages.py          write them
python tools/policy_pages.py --check  exit 1 where a page says something else, is missing, or is of no policy

Two parts of a page are written: the facts after its heading, and the parameters at its end. What is between them is
written by hand.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from gpuctl.replay.contract.policy import Parameter, Policy
from gpuctl.replay.policies import BUILT_IN, find

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "reference" / "policies"
INDEX = ROOT / "docs" / "reference" / "policies.md"
START = "<!-- Written by `make docs` from the code: do not edit up to the next mark. -->"
END = "<!-- End of what is written by `make docs`. -->"
PARAMETERS = "<!-- Parameters, written by `make docs` from the code: do not edit below. -->"


def facts(kind: type[Policy]) -> str:
    """Return the table of what is true of a policy whatever its parameters are."""
    if not kind.oracle:
        given = "no run times"
    elif kind.predicts:
        given = "true run times, which no real scheduler knows; with `--run-times`, predicted ones instead"
    else:
        given = "true run times, which no real scheduler knows"
    if kind.plans:
        given += "; time limits (`--limits-from`)"
    counts = "counted with `--resources`" if kind.resources else "ignored: only GPUs count"
    rows = [
        ("known to the policy", given),
        ("preempts", "yes" if kind.preempts else "no"),
        ("CPUs and memory", counts),
        ("source", kind.source),
    ]
    if kind.reads:
        rows.insert(3, ("configuration files", f"`--{kind.reads}-conf`"))
    table = [f"| {name} | {cell(text)} |" for name, text in rows]
    title = kind.title[0].upper() + kind.title[1:]
    return "\n".join([f"{title}.", "", "| property | value |", "|---|---|", *table, "", figure(kind.name)])


def figure(name: str) -> str:
    """Return the figure of what a policy does with the sample, drawn by tools/policy_figures.py, and what it shows."""
    what = (
        "the trace of `sample_data/philly`, around its busiest moment"
        if name == "recorded"
        else (
            "the first 100 jobs of `sample_data/jobs.csv` on 4 nodes of 8 GPUs, in the same window for every policy"
            + (", with 4 nodes to borrow according to `docs/examples/inference_load.csv`" if name == "aryl" else "")
        )
    )
    return (
        f"![{name} on the sample: the node of each job over time](../../images/policies/{name}.svg)\n\n"
        + textwrap.fill(
            f"The node of each job over time: {what}. Each row is a node; the height of a bar is the number of GPUs "
            "that the job holds there. Colours distinguish jobs and repeat.",
            120,
            break_on_hyphens=False,
        )
    )


def parameters(kind: type[Policy]) -> str:
    """Return the table of a policy's parameters, as `gpuctl policies NAME` has them."""
    if not kind.parameters:
        return "None."
    rows = [f"| `{p.name}` | {default(p)} | {cell(p.text)}{values(p)} |" for p in kind.parameters]
    return "\n".join(["| `--param` | default | meaning |", "|---|---|---|", *rows])


def default(parameter: Parameter) -> str:
    """Return a parameter's default as it is written on the command line."""
    value = parameter.default
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, tuple):
        text = ",".join(f"{number:g}" for number in value)
    else:
        text = value if isinstance(value, str) else f"{value:g}"
    return f"`{text}`" if text else "-"


def values(parameter: Parameter) -> str:
    """Return which values a parameter may have, where that is not plain."""
    if parameter.choices:
        return "; one of " + ", ".join(f"`{choice}`" for choice in parameter.choices)
    return parameter.span


def cell(text: str) -> str:
    """Return text as it may stand in a table of Markdown."""
    return text.replace("|", "\\|")


def listed() -> str:
    """Return the list of all policies for the index."""
    rows = ["| policy | rule | preempts | oracle |", "|---|---|---|---|"]
    for name in BUILT_IN:
        kind = find(name)
        given = "yes" if kind.oracle else ""
        preempts = "yes" if kind.preempts else ""
        rows.append(f"| [{name}](policies/{name}.md) | {cell(kind.title)} | {preempts} | {given} |")
    return "\n".join(rows)


def between(text: str, body: str, where: Path) -> str:
    """Return the text with what is between the two marks written anew."""
    head, start, rest = text.partition(START)
    _, end, tail = rest.partition(END)
    if not (start and end):
        sys.exit(f"{where}: must hold the lines {START} and {END}")
    return f"{head}{START}\n\n{body}\n\n{END}{tail}"


def page(name: str, old: str) -> str:
    """Return a policy's page with both of its written parts anew."""
    kind = find(name)
    where = PAGES / f"{name}.md"
    if not old.startswith(f"# {name}\n"):
        sys.exit(f"{where}: must begin with: # {name}")
    head, found, _ = between(old, facts(kind), where).partition(PARAMETERS)
    if not found:
        sys.exit(f"{where}: the line {PARAMETERS} is not there")
    return f"{head}{PARAMETERS}\n\n{parameters(kind)}\n"


def main() -> None:
    """Write the pages, or check them."""
    missing = [name for name in BUILT_IN if not (PAGES / f"{name}.md").is_file()]
    if missing:
        sys.exit(f"{PAGES}: no page of {', '.join(missing)}; copy another one and write what lies between the marks")
    more = sorted({path.stem for path in PAGES.glob("*.md")} - set(BUILT_IN))
    if more:
        sys.exit(f"{PAGES}: there is no policy {', '.join(more)}")
    new = {PAGES / f"{name}.md": page(name, (PAGES / f"{name}.md").read_text("utf-8")) for name in BUILT_IN}
    new[INDEX] = between(INDEX.read_text("utf-8"), listed(), INDEX)
    for path, text in new.items():
        if "--check" not in sys.argv[1:]:
            path.write_text(text, "utf-8")
        elif text != path.read_text("utf-8"):
            sys.exit(f"{path}: not what the code says; run: make docs")


if __name__ == "__main__":
    main()
