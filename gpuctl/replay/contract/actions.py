"""What a policy written in Python may do; a part of `View`.

Decisions take effect at once and are checked by the engine: one that cannot be carried out, or names a job or node that
does not exist, changes nothing and returns false. Invalid words and numbers are errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from operator import index
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError
from gpuctl.replay.contract import search_kernel as sk
from gpuctl.replay.contract import view_kernel as vk
from gpuctl.replay.contract.search_kernel import ANY_TYPE
from gpuctl.replay.engine.placements import placement_number
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.setup import grow
from gpuctl.replay.engine.state import MODES, NAMED_TIMERS, NO_ROOM

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.replay.contract.policy import Policy
    from gpuctl.replay.contract.waiting import WaitingJobs
    from gpuctl.replay.engine.state import State


class Actions:
    """Starting, stopping and moving jobs, reserving GPUs, lending nodes, and timers."""

    now: float
    free: int
    waiting: WaitingJobs
    reasons: list[str]
    types: tuple[str, ...]
    _policy: Policy
    _state: State
    _address: int
    _g_free: Any
    _nodes: int
    _most: int
    _own: int
    _left: int
    _tries: int
    _begun: bool
    _codes: dict[str, int]
    _type_of_class: dict[int, int]
    _is_job: Callable[[int], bool]
    _seen: Callable[[int], None]
    _runs_as_there: Callable[[int, int], bool]
    held: Callable[[int], int]
    _fresh: Any

    def start(
        self,
        job: int,
        reason: str = "",
        *,
        gpus: int | None = None,
        placement: str | None = None,
        nodes: Mapping[int, int] | None = None,
        gpu_type: int | None = None,
    ) -> bool:
        """Start a waiting job, where it fits or on the named nodes. False if that is impossible.

        Args:
            job: its number.
            reason: for the decision log.
            gpus: from `least` to `most`; None: its gang, or the sum of `nodes`.
            placement: see `PLACEMENTS`; None: the policy's own.
            nodes: GPUs by node.
            gpu_type: number in `types` of the type of all its GPUs (-1: nodes of unknown type); None: any. Named nodes
                are used as given.
        """
        self._decide()
        code, kind = self._code(reason), self._kind(gpu_type)
        if not self._is_job(job):
            return False
        job = index(job)
        wanted = 0 if gpus is None else index(gpus)
        if gpus is not None and not 0 < wanted <= self._most:
            return False
        if nodes is not None:
            if gpus is None:
                wanted = min(max(sum(map(index, nodes.values())), 0), self._most)
            done = self._choose(job, nodes) and self._do(vk.start_chosen, job, wanted, code) >= 0
            self._freed()
        else:
            free = self._do(vk.start, job, wanted, self._how(placement), kind, code)
            done = free >= 0
            if done:
                self.__dict__["free"] = free
        if done:
            self.waiting._remove(job)
        return done

    def preempt(self, job: int, reason: str = "", *, mode: str = "now") -> bool:
        """Take a running job's GPUs: ``now`` after a checkpoint, at the end of its ``epoch``, or ``abort`` it.

        Returns:
            Whether its GPUs are free now; otherwise ``events`` lists the job as queued once they are.
        """
        self._decide()
        code = self._code(reason)
        free = self._is_job(job) and self._do(vk.stop_job, index(job), self._mode(mode), code) == 1
        if free:
            self.waiting._add(index(job))
            self._freed()
        return free

    def resize(
        self, job: int, gpus: int | Mapping[int, int], reason: str = "", *, placement: str | None = None,
        gpu_type: int | None = None,
    ) -> bool:  # fmt: skip
        """Resize a running job to between `least` and `most` GPUs, at the cost of a migration.

        Its progress is kept. Named nodes are all it has from then on: to grow in place, name those of `placement` with
        more GPUs. Jobs packed on its GPUs stay, and it keeps the GPUs that they are on. A job on another job's GPUs
        moves to GPUs of its own. Unless nodes are named, it takes none that another job has reserved for a time that
        its limit reaches; `gpu_type` is as for `start`.
        """
        return self._move(job, gpus, reason, placement, gpu_type, other_size=True)

    def migrate(self, job: int, nodes: Mapping[int, int] | None = None, reason: str = "", *,
                placement: str | None = None, gpu_type: int | None = None) -> bool:  # fmt: skip
        """Migrate a running job to the named nodes, or to where it would be placed now.

        It moves alone: jobs packed on its GPUs stay, and the largest of them owns the GPUs from then on.
        """
        to = nodes if nodes is not None else self.held(job) if self._is_job(job) else 0
        return self._move(job, to, reason, placement, gpu_type, other_size=False)

    def share(self, job: int, host: int, reason: str = "", *, gpus: int | None = None, sliced: bool = False) -> bool:
        """Start a waiting job on GPUs of a running one: packed with it, or taking turns (``sliced``).

        The host must own its GPUs. It keeps them, and when it leaves, its largest guest owns them; they count for the
        owner's queue. The GPU-seconds of each GPU are split evenly among the jobs on it.

        Args:
            job: its number.
            host: whose GPUs they are.
            reason: for the decision log.
            gpus: from `least` to `most`, at most the host's; None: its gang.
            sliced: all jobs on a host's GPUs take turns, or none does.
        """
        self._decide()
        code = self._code(reason)
        wanted = 0 if gpus is None else index(gpus)
        both = self._is_job(job) and self._is_job(host) and (gpus is None or 0 < wanted <= self._most)
        done = both and self._do(vk.share_with, index(job), index(host), wanted, int(bool(sliced)), code) >= 0
        if done:
            self.waiting._remove(index(job))
        return done

    def lease(self, job: int, until: float, reason: str = "") -> bool:
        """Lease a running job its GPUs until `at`; unless the lease is renewed at that instant, it loses them."""
        self._decide()
        code = self._code(reason)
        return self._is_job(job) and self._do(vk.lease, index(job), float(until), code) >= 0

    def reserve(self, job: int, at: float, nodes: Mapping[int, int], reason: str = "") -> bool:
        """Reserve GPUs for a waiting job from `at` on: no job whose time limit reaches beyond `at` starts on them.

        They add to its earlier reservations and last until it starts, is rejected, or `unreserve` cancels them.
        """
        self._decide()
        code, at = self._code(reason), float(at)
        if at != at or not self._is_job(job) or not self._gather(vk.may_keep, index(job), nodes):  # noqa: PLR0124 - NaN
            return False
        return self._do(vk.reserve, index(job), at, code) >= 0

    def unreserve(self, job: int, reason: str = "") -> bool:
        """Cancel all reservations of a job; false if it has none."""
        self._decide()
        code = self._code(reason)
        return self._is_job(job) and self._do(vk.unreserve, index(job), code) >= 0

    def fits(
        self,
        job: int,
        without: Iterable[int] = (),
        *,
        gpus: int | None = None,
        placement: str | None = None,
        gpu_type: int | None = None,
    ) -> dict[int, int] | None:
        """Where a job would be placed now if other jobs were gone; nothing changes.

        Quotas, reservations and permitted nodes count as for `start`; a running job counts as gone itself.

        Args:
            job: a job that waits or runs.
            without: jobs taken to be gone; a job that shares GPUs with one that stays frees none.
            gpus: as for `start`.
            placement: as for `start`.
            gpu_type: as for `start`.

        Returns:
            GPUs by node; None if it does not fit.
        """
        self._seen(job)
        gone = {index(other) for other in without if self._is_job(other)}
        wanted, how, kind = 0 if gpus is None else index(gpus), self._how(placement), self._kind(gpu_type)
        if gpus is not None and not 0 < wanted <= self._most:
            return None
        if self.held(job):
            gone.add(index(job))
        self._fresh[: len(gone)] = list(gone)
        pieces = sk.place_without(self._address, index(job), len(gone), wanted, how, kind)
        if pieces < 0:
            return None
        return {int(piece.node): int(piece.gpus) for piece in self._state.choice[:pieces]}

    def loan(self, node: int, to_class: int, reason: str = "", *, until: float = math.inf, notice: float = 0.0) -> bool:
        """Lend an idle node to another class of nodes, or return it.

        With `until` it returns by itself: `notice` seconds before, ``on_reclaim`` is called, and from then on only jobs
        that may use it in its own class start on it; at `until`, other jobs still on it lose their GPUs and the work
        since their last checkpoint, and ``on_reclaim`` is called again.

        Args:
            node: its number.
            to_class: of `node_class`; its `home_class` returns it.
            reason: for the decision log.
            until: second at which it returns; inf: until returned explicitly.
            notice: seconds.

        Returns:
            also false if some class of jobs that runs there has speed 0 on the node's GPUs.
        """
        self._decide()
        code = self._code(reason)
        there = 0 <= index(node) < self._nodes and index(to_class) in self._type_of_class
        there = there and self._runs_as_there(index(node), index(to_class))
        done = there and self._do(vk.loan, index(node), index(to_class), float(until), float(notice), code) >= 0
        self._freed()
        return done

    def wake(self, job: int, at: float) -> bool:
        """Have `on_wake` called for the job at that second (one timer per job)."""
        return self._is_job(job) and bool(vk.wake(self._address, index(job), float(at)))

    def timer(self, at: float, number: int = 0) -> bool:
        """Have `on_timer` called at that second; there are 64 numbered timers."""
        if not 0 <= index(number) < NAMED_TIMERS:
            raise InputError(f"{self._policy.name}: timer {number}: expected 0 to {NAMED_TIMERS - 1}")
        return bool(vk.timer(self._address, index(number), float(at)))

    def reject(self, job: int, reason: str = "") -> bool:
        """Take a waiting job out of the queue for good."""
        self._decide()
        code = self._code(reason)
        done = self._is_job(job) and self._do(vk.refuse, index(job), code) >= 0
        if done:
            self.waiting._remove(index(job))
        return done

    def _do(self, action: Callable[..., int], *args: float) -> int:
        """Run an engine action, growing its arrays first if they lack room."""
        done = action(self._address, *args)
        while done == NO_ROOM:
            grow(self._state)
            done = action(self._address, *args)
        if done >= 0:
            self.__dict__["_left"] -= 1
            self.__dict__["_running"] = None
        return done

    def _freed(self) -> None:
        self.__dict__["free"] = int(self._g_free[0])

    def _decide(self) -> None:
        self.__dict__["_tries"] -= 1
        if self._left <= 0 or self._tries < 0:
            if not self._begun:
                raise InputError(
                    f"{self._policy.name} acts in begin(), before the first instant",
                    hint="no job has been submitted then and only view.timer may be set; start jobs in decide() or in "
                    "a hook, such as on_submit()",
                )
            raise InputError(
                f"{self._policy.name}: more decisions at second {self.now:g} than three per waiting or "
                f"running job and one per node" + ("" if self._left <= 0 else ", most of them in vain"),
                hint="does it start and preempt the same jobs in turns?",
            )

    def _code(self, reason: str) -> int:
        code = self._codes.get(reason)
        if code is None:
            if not isinstance(reason, str):
                raise TypeError(f"reason {reason!r}: expected a text")
            if len(self.reasons) >= 10_000:
                raise InputError(
                    f"{self._policy.name}: more than 10,000 different reasons", hint="leave numbers out of reasons"
                )
            self.reasons.append(reason)
            code = self._codes[reason] = len(REASONS) + len(self.reasons) - 1
        return code

    def _how(self, placement: str | None) -> int:
        return self._own if placement is None else placement_number(placement, self._policy.name)

    def _mode(self, mode: str) -> int:
        if mode not in MODES:
            raise InputError(f"{self._policy.name}: mode {mode!r}", hint=f"expected one of {', '.join(MODES)}")
        return MODES[mode]

    def _kind(self, gpu_type: int | None) -> int:
        if gpu_type is None:
            return ANY_TYPE
        if not -1 <= index(gpu_type) < len(self.types):
            raise InputError(
                f"{self._policy.name}: GPU type {gpu_type!r}: expected a number from -1 to {len(self.types) - 1}, its "
                "place in view.types"
            )
        return index(gpu_type)

    def _choose(self, job: int, nodes: Mapping[int, int]) -> bool:
        return self._gather(vk.add, job, nodes)

    def _gather(self, add: Callable[..., bool], job: int, nodes: Mapping[int, int]) -> bool:
        """Choose GPUs of nodes for a job; false if one of them is not available."""
        vk.clear(self._address)
        for node, gpus in nodes.items():
            there = 0 <= index(node) < self._nodes and 0 < index(gpus) <= self._most
            if not there or not add(self._address, job, index(node), index(gpus)):
                return False
        return True

    def _move(
        self,
        job: int,
        to: int | Mapping[int, int],
        reason: str,
        placement: str | None,
        gpu_type: int | None,
        *,
        other_size: bool,
    ) -> bool:
        self._decide()
        code, how, kind = self._code(reason), self._how(placement), self._kind(gpu_type)
        if not self._is_job(job):
            return False
        job = index(job)
        if isinstance(to, Mapping):
            ready = self._choose(job, to)
        else:
            ready = 0 < index(to) <= self._most and vk.find_for(self._address, job, index(to), how, kind, other_size)
        done = bool(ready) and self._do(vk.move_chosen, job, other_size, code) >= 0
        self._freed()
        return done
