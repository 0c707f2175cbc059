"""The policies of ``gpuctl dag`` by name: baselines, the search, and rules from a saved tree or a text file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.research.dag import choices_kernel as kernel
from gpuctl.research.dag.features import Limit, features_of
from gpuctl.trees.rules import Rule, Rules, Tier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


PLAIN = {
    "fifo": kernel.FIFO, "fair": kernel.FAIR, "wfair": kernel.WFAIR, "cp": kernel.CP, "srpt": kernel.SRPT,
    "rollout": kernel.ROLLOUT,
}  # fmt: skip
TREE = "tree:"


_KINDS = {Limit.FAIR: kernel.TREE_FAIR, Limit.ALL: kernel.TREE_ALL, Limit.TREE: kernel.TREE_AMOUNT}


@dataclass(frozen=True)
class Policy:
    """A way to decide.

    Attributes:
        name: as given by the user.
        kind: of `choices_kernel`.
        rules: of policies with rules.
        card: card of the rules' model; None: there is none.
    """

    name: str
    kind: int
    rules: Rules | None = None
    card: Mapping[str, Any] | None = None

    @property
    def limit(self) -> Limit | None:
        """Return the limit on executors of its rules; None: it has no rules."""
        return next((limit for limit, kind in _KINDS.items() if kind == self.kind), None)


def by_rules(name: str, rules: Rules, limit: Limit) -> Policy:
    """Return the policy with these rules."""
    return Policy(name, _KINDS[limit], rules)


def with_patch(policy: Policy, patch: Rules) -> Policy:
    """Return the policy with the rules of a patch before its own; they may use any feature that its limit allows."""
    assert policy.rules is not None  # noqa: S101 - the caller's
    return replace(policy, rules=Rules(policy.rules.features, (*patch.rules, *policy.rules.rules)))


def parse(text: str, limit: Limit | None = None, patch: Path | None = None) -> list[Policy]:
    """Parse the policies of ``--policy A,B``.

    Args:
        text: names with commas; ``tree:MODEL`` names a saved tree, its JSON file, or a text file of rules.
        limit: of trees; None: as recorded in the model, ``fair`` for a file.
        patch: a file of rules that precede those of a tree.

    Raises:
        UsageError: a policy is unknown or listed twice, or there is a limit or a patch but no tree.
        InputError: a tree cannot be read.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in PLAIN and not (name.startswith(TREE) and name != TREE):
            raise UsageError(
                f"there is no policy {name[:60]!r}; there are {', '.join(PLAIN)} and tree:MODEL",
                hint="tree:MODEL names a folder of gpuctl dag distil, a tree's .json, or a text file of rules",
            )
        if names.count(name) > 1:
            raise UsageError(f"--policy names {name[:60]} twice")
    if (limit is not None or patch is not None) and not any(name.startswith(TREE) for name in names):
        raise UsageError("--limit and --patch are for trees", hint="add tree:MODEL to --policy, or leave them out")
    return [_policy(name, limit, patch) for name in names]


def _policy(name: str, limit: Limit | None, patch: Path | None) -> Policy:
    if name in PLAIN:
        return Policy(name, PLAIN[name])
    from gpuctl.research.dag.model import load

    found = load(Path(name.removeprefix(TREE)), limit)
    policy = replace(by_rules(name, found.rules, found.limit), card=found.card)
    if patch is None:
        return policy
    from gpuctl.trees.rules import read_file

    return with_patch(policy, read_file(patch, features_of(found.limit), whole=False))


def packed(rules: Rules | None) -> kernel.Rules:
    """Return rules as arrays."""
    each: Sequence[Rule] = () if rules is None else rules.rules
    conditions = [c for rule in each for c in rule.conditions]
    return kernel.Rules(
        at=np.cumsum([0, *(len(rule.conditions) for rule in each)]),
        feature=np.array([c.feature for c in conditions], np.int64),
        above=np.array([int(c.above) for c in conditions], np.int64),
        limit=np.array([c.limit for c in conditions], np.int64),
        tier=np.array([int(rule.tier) for rule in each], np.int64),
        chosen=np.array([rule.chosen for rule in each], np.int64),
        other=np.array([rule.other for rule in each], np.int64),
    )


assert (Tier.AVOIDED, Tier.JUDGED, Tier.PREFERRED) == (kernel.AVOIDED, kernel.JUDGED, kernel.PREFERRED)  # noqa: S101
