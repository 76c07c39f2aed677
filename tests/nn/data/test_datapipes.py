"""Pipes of samples: what PyTorch's give, and raise (oracle), from the same expressions; and the
rules that only a program shows (closed forms)."""

from __future__ import annotations

import importlib
import pickle
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import plugrad
from plugrad.utils.data import (
    DataLoader,
    IterDataPipe,
    argument_validation,
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
)
from plugrad.utils.data.datapipes.iter import IterableWrapper
from plugrad.utils.data.datapipes.map import SequenceWrapper
from plugrad.utils.data.graph import traverse_dps
from plugrad.utils.data.graph_settings import (
    apply_sharding,
    apply_shuffle_settings,
    get_all_graph_pipes,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*not supported by pickle")


def pipes_of(library: Any) -> SimpleNamespace:
    """What the expressions below use of a library."""
    data = f"{library.__name__}.utils.data"
    found = SimpleNamespace(lib=library, data=importlib.import_module(data))
    found.it = importlib.import_module(f"{data}.datapipes.iter")
    found.map = importlib.import_module(f"{data}.datapipes.map")
    found.sharding = importlib.import_module(f"{data}.datapipes.iter.sharding")
    found.W, found.M = found.it.IterableWrapper, found.map.SequenceWrapper
    found.five = found.W(range(5))
    return found


def pair(x: Any, y: Any) -> Any:
    return (x, y)


def both_shares(p: Any) -> Any:
    pipe = p.W(range(20)).sharding_filter()
    kinds = p.sharding.SHARDING_PRIORITIES
    pipe.apply_sharding(2, 1, kinds.DISTRIBUTED)
    pipe.apply_sharding(3, 1, kinds.MULTIPROCESSING)
    return list(pipe), len(pipe)


def mixed_shares(p: Any) -> Any:
    pipe = p.five.sharding_filter()
    pipe.apply_sharding(2, 1)
    pipe.apply_sharding(2, 1, p.sharding.SHARDING_PRIORITIES.DISTRIBUTED)


def reader_that_is_late(p: Any) -> Any:
    first, second = p.five.fork(2)
    late = iter(second)
    next(iter(first)), next(late)
    next(iter(first))
    return next(late)


def too_far_ahead(p: Any) -> Any:
    first, second = p.five.fork(2, buffer_size=2)
    iter(second)
    return list(first)


EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    "map": lambda p: (list(p.five.map(str)), len(p.five.map(str))),
    "map a column": lambda p: list(p.W([(1, 2), (3, 4)]).map(str, input_col=1)),
    "map to another column": lambda p: list(p.W([{"a": 1}]).map(str, "a", "b")),
    "map columns to one more": lambda p: list(p.W([(1, 2)]).map(pair, [0, 1], -1)),
    "map columns to the first": lambda p: list(p.W([(1, 2, 3)]).map(pair, [2, 0])),
    "map columns of a list": lambda p: list(p.W([[1, 2]]).map(str, [1], [0])),
    "map too many columns": lambda p: p.five.map(str.upper, input_col=[0, 1]),
    "map too few columns": lambda p: p.five.map(pair, input_col=0),
    "map a keyword": lambda p: p.five.map(lambda x, *, y: x),
    "map without input": lambda p: p.five.map(str, output_col=0),
    "map to two columns": lambda p: p.five.map(str, 0, [0, 1]),
    "map no such column": lambda p: list(p.W([(1,)]).map(str, input_col=5)),
    "collate": lambda p: [batch.tolist() for batch in p.five.batch(2).collate()],
    "filter": lambda p: list(p.five.filter(bool)),
    "filter a column": lambda p: list(p.W([(1, 0), (0, 1)]).filter(bool, input_col=1)),
    "filter no bool": lambda p: list(p.five.filter(str)),
    "batch": lambda p: (list(p.five.batch(2)), len(p.five.batch(2))),
    "batch and drop": lambda p: (list(p.five.batch(2, True)), len(p.five.batch(2, True))),
    "batch of none": lambda p: p.five.batch(0),
    "batch as tuples": lambda p: list(p.five.batch(2, wrapper_class=tuple)),
    "unbatch": lambda p: list(p.W([[0, [1]], [[2, 3]]]).unbatch()),
    "unbatch two levels": lambda p: list(p.W([[[0], [1]], [[2]]]).unbatch(unbatch_level=2)),
    "unbatch all": lambda p: list(p.W([[[0], [1]], [(2,)]]).unbatch(unbatch_level=-1)),
    "unbatch too many": lambda p: list(p.five.unbatch()),
    "unbatch -2": lambda p: list(p.five.unbatch(-2)),
    "group": lambda p: list(p.five.groupby(lambda x: x % 2)),
    "group by size": lambda p: list(p.five.groupby(lambda x: x % 2, group_size=2)),
    "group and keep keys": lambda p: list(p.five.groupby(lambda x: x % 2, keep_key=True)),
    "group in a small buffer": lambda p: list(
        p.W(range(9)).groupby(lambda x: x % 3, buffer_size=4, group_size=3, guaranteed_group_size=2)
    ),
    "group and drop": lambda p: list(
        p.W(range(9)).groupby(lambda x: x % 3, buffer_size=4, group_size=3, drop_remaining=True)
    ),
    "group too small a buffer": lambda p: list(
        p.five.groupby(lambda x: x % 3, buffer_size=3, group_size=3)
    ),
    "group of no size": lambda p: p.five.groupby(str, group_size=0),
    "group without a size": lambda p: p.five.groupby(str, guaranteed_group_size=2),
    "zip": lambda p: (list(p.five.zip(p.W("ab"))), len(p.five.zip(p.W("ab")))),
    "zip with a list": lambda p: p.five.zip([1]),
    "concat": lambda p: (list(p.five.concat(p.W("ab"))), len(p.five.concat(p.W("ab")))),
    "concat nothing": lambda p: p.it.Concater(),
    "concat a list": lambda p: p.five.concat([1]),
    "mux": lambda p: (list(p.five.mux(p.W("ab"))), len(p.five.mux(p.W("ab")))),
    "fork": lambda p: [list(each) for each in p.five.fork(2)],
    "fork one": lambda p: p.five.fork(1),
    "fork none": lambda p: p.five.fork(0),
    "fork and copy": lambda p: p.five.fork(2, copy="other"),
    "fork and run ahead": too_far_ahead,
    "fork and start anew": reader_that_is_late,
    "fork and pickle": lambda p: [
        list(each) for each in pickle.loads(pickle.dumps(p.five.fork(2)))
    ],
    "demux": lambda p: [list(each) for each in p.five.demux(2, lambda x: x % 2)],
    "demux None": lambda p: [list(each) for each in p.five.demux(2, lambda x: x or None)],
    "demux and drop": lambda p: [
        list(each) for each in p.W("abc").demux(2, {"a": 1, "c": 0}.get, drop_none=True)
    ],
    "demux and wait": lambda p: list(p.five.demux(2, lambda x: 1, buffer_size=2)[0]),
    "shuffle by a seed": lambda p: list(p.five.shuffle().set_seed(3)),
    "shuffle": lambda p: (p.lib.manual_seed(0), [list(p.five.shuffle()) for _ in range(3)])[1],
    "shuffle in a buffer": lambda p: list(p.W(range(10)).shuffle(buffer_size=3).set_seed(1)),
    "shuffle batches": lambda p: list(p.W([[0, 1], [2]]).shuffle(unbatch_level=1).set_seed(1)),
    "shuffle not": lambda p: list(p.five.shuffle().set_shuffle(False)),
    "shuffle in no buffer": lambda p: p.five.shuffle(buffer_size=0),
    "sampler": lambda p: list(p.it.Sampler(p.five)),
    "shares of two kinds": both_shares,
    "shares that are mixed": mixed_shares,
    "a share that is not": lambda p: p.five.sharding_filter().apply_sharding(2, 2),
    "no length": lambda p: len(p.W(iter([1]))),
    "no such method": lambda p: p.five.nothing,
    "printed": lambda p: (repr(p.five), str(p.five.batch(2))),
    "map pipe": lambda p: (list(p.M("abc").map(str.upper)), p.M({"a": 1})["a"]),
    "map pipe in batches": lambda p: (list(p.M(range(5)).batch(2)), len(p.M("abc").batch(2, True))),
    "map pipe, no such batch": lambda p: p.M(range(5)).batch(2)[7],
    "map pipe, no such index": lambda p: p.M("ab").concat(p.M("c"))[3],
    "map pipe, no such tuple": lambda p: p.M("ab").zip(p.M("c"))[1],
    "map pipes together": lambda p: (
        list(p.M("ab").zip(p.M("cd"))),
        list(p.M("ab").concat(p.M("c"))),
    ),
    "map pipe of nothing": lambda p: p.map.Zipper(),
    "map pipe of a list": lambda p: p.map.Concater([1]),
    "map pipe shuffled": lambda p: list(p.M(range(5)).shuffle().set_seed(1)),
    "map pipe not shuffled": lambda p: list(p.M("abc").shuffle(indices=[2, 0]).set_shuffle(False)),
}


def outcome(expression: Callable[[Any], Any], library: Any) -> str:
    """What an expression gives, or its error, without the name of the library."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = repr(expression(pipes_of(library)))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    return "\n".join([text, *(str(each.message) for each in caught)])


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_pipes_give_what_those_of_pytorch_give(name: str, torch_oracle: Any) -> None:
    expression = EXPRESSIONS[name]
    assert outcome(expression, plugrad) == outcome(expression, torch_oracle)


LOADERS: dict[str, Callable[[Any], Any]] = {
    "batches": lambda p: p.data.DataLoader(p.five, batch_size=2),
    "a shuffler": lambda p: p.data.DataLoader(p.five.shuffle(), batch_size=2),
    "a shuffler that is turned off": lambda p: p.data.DataLoader(
        p.five.shuffle(), 2, shuffle=False
    ),
    "batches of the pipe": lambda p: p.data.DataLoader(p.five.shuffle().batch(2), None),
    "workers": lambda p: p.data.DataLoader(
        p.five.shuffle().sharding_filter(), batch_size=2, num_workers=2
    ),
    "workers that stay": lambda p: p.data.DataLoader(
        p.five.shuffle().sharding_filter(), 2, num_workers=2, persistent_workers=True
    ),
    "a map pipe": lambda p: p.data.DataLoader(p.M(range(5)), 2, shuffle=True),
    "a map pipe, shuffled": lambda p: p.data.DataLoader(p.M(range(5)).shuffle(), 2),
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_loader_reads_pipes_in_the_order_of_pytorch(name: str, torch_oracle: Any) -> None:
    found = []
    for library in (plugrad, torch_oracle):
        loader = LOADERS[name](pipes_of(library))
        library.manual_seed(3)
        found.append([[repr(batch) for batch in loader] for _ in range(3)])
    assert found[0] == found[1]


def test_workers_read_each_sample_once() -> None:
    pipe = IterableWrapper(range(7)).shuffle().sharding_filter()
    samples = list(DataLoader(pipe, batch_size=None, num_workers=2))
    assert sorted(samples) == list(range(7))


def test_a_loader_adds_a_shuffler_when_it_is_asked_to_shuffle() -> None:
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        loader = DataLoader(IterableWrapper(range(50)), batch_size=None, shuffle=True)
    samples = list(loader)
    assert samples != sorted(samples)
    assert sorted(samples) == list(range(50))


def test_a_second_iterator_invalidates_the_first() -> None:
    pipe = IterableWrapper("abc")
    first, second = iter(pipe), iter(pipe)
    assert next(first) == "a"
    assert next(second) == "a"
    with pytest.raises(RuntimeError, match=r"iterator has been invalidated.*deepcopy=True"):
        next(first)
    assert list(second) == ["b", "c"]


class Counter(IterDataPipe[int]):
    """Its own iterator."""

    def __init__(self) -> None:
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1
        self.count = 0

    def __next__(self) -> int:
        self.count += 1
        if self.count > 3:
            raise StopIteration
        return self.count


def test_a_pipe_that_is_its_own_iterator_is_reset_by_each_epoch() -> None:
    pipe = Counter()
    assert (list(pipe), list(pipe), pipe.resets) == ([1, 2, 3], [1, 2, 3], 2)
    first = iter(pipe)
    next(first)
    next(iter(pipe))
    with pytest.raises(RuntimeError, match="invalidated"):
        next(first)


class Doubled(IterDataPipe[Any]):
    def __init__(self, source: Any) -> None:
        self.source = source

    def __iter__(self) -> Iterator[Any]:
        for sample in self.source:
            yield 2 * sample


def test_a_registered_class_is_a_method_of_pipes_until_its_name_is_taken() -> None:
    functional_datapipe("doubled_in_a_test")(Doubled)
    try:
        pipe: Any = IterableWrapper("ab")
        assert list(pipe.doubled_in_a_test()) == ["aa", "bb"]
        assert "doubled_in_a_test" in dir(pipe)
        with pytest.raises(Exception, match="doubled_in_a_test as it is already taken"):
            functional_datapipe("doubled_in_a_test")(Doubled)
    finally:
        del IterDataPipe.functions["doubled_in_a_test"]
    with pytest.raises(NotImplementedError, match="enable_df_api_tracing"):
        functional_datapipe("of_frames", enable_df_api_tracing=True)(Doubled)


def test_a_pipe_of_uncertain_order_cannot_be_made_where_order_is_guaranteed() -> None:
    uncertain = non_deterministic(lambda source: source == "set")(Doubled)
    with guaranteed_datapipes_determinism():
        assert list(uncertain("ab")) == ["aa", "bb"]
        with pytest.raises(TypeError, match="Doubled is non-deterministic"):
            uncertain("set")
    assert isinstance(uncertain("set"), Doubled)


def test_validation_compares_samples_and_arguments_with_what_is_declared() -> None:
    class Whole(IterDataPipe[int]):
        @runtime_validation
        def __iter__(self) -> Iterator[Any]:
            yield from (1, "a")

    class Text(IterDataPipe[str]):
        pass

    @argument_validation
    def reads(pipe: IterDataPipe[int]) -> Any:
        return pipe

    samples = iter(Whole())
    assert next(samples) == 1
    with pytest.raises(RuntimeError, match="subtype of <class 'int'>, but found a"):
        next(samples)
    assert isinstance(reads(Whole()), Whole)
    with pytest.raises(TypeError, match="argument 'pipe' as a subtype of hint"):
        reads(Text())  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match="'pipe' as a IterDataPipe, but found <class 'int'>"):
        reads(3)  # type: ignore[arg-type]  # what is tested


def test_hooks_replace_how_pipes_are_pickled() -> None:
    pipe = IterableWrapper([1])
    IterDataPipe.set_reduce_ex_hook(lambda pipe: (list, (["by the hook"],)))
    try:
        assert pickle.loads(pickle.dumps(pipe)) == ["by the hook"]
        with pytest.raises(RuntimeError, match="override existing reduce_ex_hook"):
            IterDataPipe.set_reduce_ex_hook(repr)
    finally:
        IterDataPipe.set_reduce_ex_hook(None)
    assert list(pickle.loads(pickle.dumps(pipe))) == [1]


def test_the_graph_has_each_source_and_settings_reach_it() -> None:
    source = IterableWrapper(range(4)).shuffle()
    pipe: Any = source.sharding_filter().map(str)
    names = [str(each) for each in get_all_graph_pipes(traverse_dps(pipe))]
    assert [name.removesuffix("IterDataPipe") for name in names] == [
        "Mapper",
        "ShardingFilter",
        "Shuffler",
        "IterableWrapper",
    ]
    apply_shuffle_settings(pipe, shuffle=False)
    assert list(apply_sharding(pipe, 2, 1)) == ["1", "3"]
    with pytest.raises(RuntimeError, match="Sharding twice"):
        apply_sharding(pipe.sharding_filter(), 2, 1)


def test_a_pipe_of_indices_is_pickled_with_its_samples() -> None:
    pipe = pickle.loads(pickle.dumps(SequenceWrapper("abc").batch(2)))
    assert list(pipe) == [["a", "b"], ["c"]]
