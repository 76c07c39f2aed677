"""In which order a rank runs its stages forward and backward: lists, which can be read and tested
without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

__all__ = ["Action", "gpipe", "interleaved_1f1b", "looped_bfs", "one_f_one_b"]


class Action(NamedTuple):
    """A stage runs one microbatch, forward ("F") or backward ("B")."""

    kind: Literal["F", "B"]
    stage: int
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"


def _all(kind: Literal["F", "B"], stage: int, count: int) -> list[Action]:
    return [Action(kind, stage, number) for number in range(count)]


def gpipe(stage: int, count: int) -> list[Action]:
    """All microbatches forward, then all backward.

    Source: Huang et al., "GPipe", 2019.
    """
    return _all("F", stage, count) + _all("B", stage, count)


def one_f_one_b(stage: int, stages: int, count: int) -> list[Action]:
    """One forward, one backward, once the pipeline is full: a stage keeps at most as many
    microbatches as there are stages from it on.

    Source: Narayanan et al., "PipeDream", 2019.
    """
    forward, backward = _all("F", stage, count), _all("B", stage, count)
    return _alternating(forward, backward, min(count, stages - stage))


def _alternating(forward: list[Action], backward: list[Action], ahead: int) -> list[Action]:
    """The first ones forward, then a backward and a forward one in turns, then the rest."""
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
    """`one_f_one_b` with several stages on each rank: the ranks take turns in smaller steps, and
    idle for a shorter time.

    Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021, section 2.2.

    Raises:
        ValueError: the microbatches do not make up whole rounds of all ranks.
    """
    local = stages // ranks
    rounds = max(1, count // ranks)
    if count % rounds:
        raise ValueError(
            f"n_microbatches must be a multiple of the number of rounds, {rounds} for {ranks} "
            f"ranks, got {count}"
        )
    in_round = count // rounds
    total = count * local
    # Forward runs that come before the first backward one.
    ahead = min(total, (local - 1) * in_round + 2 * (ranks - 1 - rank) + 1)
    forward = list(_in_turns("F", [rank + ranks * n for n in range(local)], in_round, rounds))
    last_first = [rank + ranks * n for n in reversed(range(local))]
    backward = list(_in_turns("B", last_first, in_round, rounds))
    return _alternating(forward, backward, ahead)


def _in_turns(
    kind: Literal["F", "B"], stages: list[int], in_round: int, rounds: int
) -> Iterator[Action]:
    """A round of microbatches through one stage after the other, then the next round."""
    for turn in range(rounds):
        for stage in stages:
            for number in range(in_round):
                yield Action(kind, stage, turn * in_round + number)
