"""The order in which a rank runs its stages forward and backward, as lists that can be read and
tested without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

__all__ = [
    "Action",
    "Kind",
    "gpipe",
    "interleaved_1f1b",
    "interleaved_zero_bubble",
    "looped_bfs",
    "one_f_one_b",
    "v_zero_bubble",
]


Kind = Literal["F", "B", "I", "W"]


class Action(NamedTuple):
    """A stage runs one microbatch, forward ("F") or backward ("B"). Backward may be split in two:
    the gradients of the stage's inputs ("I") and, later, of its parameters ("W").

    >>> from plugrad.distributed.pipelining import Action
    >>> print(Action("F", stage=1, microbatch=0), Action("B", stage=1, microbatch=0))
    1F0 1B0
    """

    kind: Kind
    stage: int
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"


def _all(kind: Kind, stage: int, count: int) -> list[Action]:
    return [Action(kind, stage, number) for number in range(count)]


def gpipe(stage: int, count: int) -> list[Action]:
    """All microbatches forward, then all backward.

    Source: Huang et al., "GPipe", 2019.
    """
    return _all("F", stage, count) + _all("B", stage, count)


def one_f_one_b(stage: int, stages: int, count: int) -> list[Action]:
    """One forward, one backward, once the pipeline is full. A stage keeps at most as many
    microbatches as there are stages from it to the last.

    Source: Narayanan et al., "PipeDream", 2019.
    """
    forward, backward = _all("F", stage, count), _all("B", stage, count)
    return _alternating(forward, backward, min(count, stages - stage))


def _alternating(forward: list[Action], backward: list[Action], ahead: int) -> list[Action]:
    """The first ones forward, then backward and forward alternate, then the rest."""
    found = forward[:ahead]
    for number, action in enumerate(backward):
        found.append(action)
        found += forward[ahead + number : ahead + number + 1]
    return found


def looped_bfs(rank: int, ranks: int, stages: int, count: int) -> list[Action]:
    """All microbatches through one stage of the rank, then through the next; back the same way.

    Source: Lamy-Poirier, "Breadth-First Pipeline Parallelism", 2023.
    """
    own = range(rank, stages, ranks)
    found = [action for stage in own for action in _all("F", stage, count)]
    for stage in reversed(own):
        found += _all("B", stage, count)[::-1]
    return found


def interleaved_1f1b(rank: int, ranks: int, stages: int, count: int) -> list[Action]:
    """`one_f_one_b` with several stages on each rank: the ranks alternate in smaller steps and idle
    for a shorter time.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021, section 2.2.

    Raises:
        ValueError: the number of microbatches is not a multiple of a round of all ranks.
    """
    local = stages // ranks
    rounds, in_round = _rounds(ranks, count)
    total = count * local
    # The number of forward runs before the first backward run.
    ahead = min(total, (local - 1) * in_round + 2 * (ranks - 1 - rank) + 1)
    forward = list(_in_turns("F", [rank + ranks * n for n in range(local)], in_round, rounds))
    last_first = [rank + ranks * n for n in reversed(range(local))]
    backward = list(_in_turns("B", last_first, in_round, rounds))
    return _alternating(forward, backward, ahead)


def _rounds(ranks: int, count: int) -> tuple[int, int]:
    """The number of rounds of microbatches, and how many microbatches each round has.

    Raises:
        ValueError: the microbatches do not divide into whole rounds.
    """
    rounds = max(1, count // ranks)
    if count % rounds:
        raise ValueError(
            f"n_microbatches must be a multiple of the number of rounds, {rounds} for {ranks} "
            f"ranks, got {count}"
        )
    return rounds, count // rounds


def _in_turns(kind: Kind, stages: list[int], in_round: int, rounds: int) -> Iterator[Action]:
    """A round of microbatches through one stage after the other, then the next round."""
    for turn in range(rounds):
        for stage in stages:
            for number in range(in_round):
                yield Action(kind, stage, turn * in_round + number)


def interleaved_zero_bubble(rank: int, ranks: int, stages: int, count: int) -> list[Action]:
    """`interleaved_1f1b` with backward in two parts. Rank r computes gradients of parameters r
    microbatches later, so that later ranks have work while the pipeline drains. If all parts take
    the same time, each rank idles for `ranks - 1` of them.

    Source: Qi et al., "Zero Bubble Pipeline Parallelism", 2023, schedule ZB-H1.

    Raises:
        ValueError: the number of microbatches is not a multiple of a round of all ranks.
    """
    local = stages // ranks
    rounds, in_round = _rounds(ranks, count)
    total = count * local
    ahead = min(total, (local - 1) * in_round + (ranks - 1 - rank) + 1)
    own = [rank + ranks * n for n in range(local)]
    forward = list(_in_turns("F", own, in_round, rounds))
    inputs = list(_in_turns("I", own[::-1], in_round, rounds))
    weights = list(_in_turns("W", own[::-1], in_round, rounds))
    found = forward[:ahead]
    for number, action in enumerate(inputs):
        found.append(action)
        if number >= rank:
            found.append(weights[number - rank])
        found += forward[ahead + number : ahead + number + 1]
    return found + weights[max(0, total - rank) :]


def v_zero_bubble(rank: int, ranks: int, count: int) -> list[Action]:
    """Two stages on each rank, placed in a V: rank r has the stages r and `2 * ranks - 1 - r`.
    Backward has two parts. The first and the last stage are on one rank, so backward begins where
    forward ends.

    A rank keeps at most as much as all stages keep of one microbatch: the data of `2 * ranks`
    forward runs.

    Source of the placement and of the limit: Qi et al., "Pipeline Parallelism with Controllable
    Memory", 2024, schedule ZB-V. The order is found by a simulation in which all ranks choose their
    next action in turn; actions that others wait for come first.
    """
    return list(_v_zero_bubble(ranks, count)[rank])


@lru_cache(maxsize=16)
def _v_zero_bubble(ranks: int, count: int) -> tuple[tuple[Action, ...], ...]:
    run = _Choosing(ranks, count)
    while run.left:
        chosen = [(rank, action) for rank in range(ranks) if (action := run.choice(rank))]
        for rank, action in chosen:
            run.take(rank, action)
    return tuple(tuple(order) for order in run.orders)


class _Choosing:
    """Simulates all ranks of a V, in turns of equal length."""

    def __init__(self, ranks: int, count: int) -> None:
        self.ranks, self.count = ranks, count
        self.stages = 2 * ranks
        self.orders: list[list[Action]] = [[] for _ in range(ranks)]
        self.left = 3 * self.stages * count
        # How many microbatches are done, by kind and stage.
        self.done: dict[tuple[Kind, int], int] = {}

    def _done(self, kind: Kind, stage: int) -> int:
        return self.done.get((kind, stage), 0)

    def take(self, rank: int, action: Action) -> None:
        self.orders[rank].append(action)
        self.done[action.kind, action.stage] = action.microbatch + 1
        self.left -= 1

    def choice(self, rank: int) -> Action | None:
        """Gradients of inputs first, because others wait for them, then forward within the memory
        limit, then gradients of parameters; None if there is nothing to do."""
        # The later stage first, because its results come back sooner.
        own = (self.stages - 1 - rank, rank)
        for stage in own:
            number = self._done("I", stage)
            behind = self._done("F", stage)
            if stage < self.stages - 1:
                behind = self._done("I", stage + 1)
            if number < min(behind, self._done("F", stage)):
                return Action("I", stage, number)
        kept = sum(self._done("F", stage) - self._done("W", stage) for stage in own)
        for stage in own:
            number = self._done("F", stage)
            before = self._done("F", stage - 1) if stage else self.count
            # The earlier stage leaves memory for microbatches that come back.
            room = self.stages if stage == own[0] else self.stages - 1
            if number < before and kept < room:
                return Action("F", stage, number)
        waiting = [stage for stage in own if self._done("W", stage) < self._done("I", stage)]
        if not waiting:
            return None
        stage = max(waiting, key=lambda each: self._done("I", each) - self._done("W", each))
        return Action("W", stage, self._done("W", stage))
