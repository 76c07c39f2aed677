"""Recordings of small programs; the engine's rules determine the expected events."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plugrad
from plugrad.plugins.watching import read
from plugrad.utils.checkpoint import checkpoint
from tests.viewer.recordings import events, kinds, names, validate


def scale(grad: Any) -> Any:
    return grad * 2


def note(*args: Any) -> None:
    return None


def by_name(data: Any) -> dict[str, int]:
    """The number of each node; only where all names differ."""
    return {node["name"]: number for number, node in enumerate(data["nodes"])}


def test_forward_lists_calls_their_way_through_the_keys_and_the_lines_they_come_from() -> None:
    x = plugrad.ones(2, 3, requires_grad=True)
    with plugrad.viewer.record() as recording:
        y = x.exp()  # the line
    data = recording.data
    validate(data)
    (call,) = data["calls"]
    assert call["op"] == "exp"
    assert [step["key"] for step in call["steps"]] == ["AutogradCPU", "CPU"]
    assert [step["depth"] for step in call["steps"]] == [0, 1]
    with plugrad.record_dispatch_trace() as trace:
        x.exp()
    computed = trace[-1]
    assert call["steps"][1]["kernel"] == computed.kernel
    # Only a package that brings a variant of the kernel computes in the backend's place.
    assert computed.kernel.startswith("plugrad-cpu ") or computed.kind == "variant"
    assert call["inputs"][0]["shape"] == [2, 3]
    assert call["outputs"] == [{"name": "", "shape": [2, 3], "dtype": "float32", "device": "cpu"}]
    number, line = call["source"]
    source = data["sources"][number]
    assert source["file"] == __file__
    assert source["lines"][line - source["first"]].endswith("# the line")
    assert kinds(data) == ["call", "step", "step", "node", "node", "save", "memory", "end"]
    assert y.grad_fn is not None


def test_each_step_has_the_key_set_that_the_dispatcher_looked_at() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.viewer.record() as recording:
        x.exp()
    data = recording.data
    validate(data)
    (call,) = data["calls"]
    sets = [data["keysets"][step["keyset"]] for step in call["steps"]]
    # That of the tensor, then what the autograd kernel leaves of it: as exp writes nothing in
    # place, ADInplaceOrView has no kernel for it.
    assert sets == [["AutogradCPU", "ADInplaceOrView", "CPU"], ["ADInplaceOrView", "CPU"]]
    assert [step["key"] for step in call["steps"]] == ["AutogradCPU", "CPU"]


def test_a_call_that_raises_is_told_from_one_that_returns() -> None:
    with plugrad.viewer.record() as recording, pytest.raises(RuntimeError):
        plugrad.ones(2, 3) @ plugrad.ones(2, 3)
    data = recording.data
    validate(data)
    raised = {call["op"]: call["raised"] for call in data["calls"]}
    assert raised.pop("ones") is False
    assert raised["matmul"]
    assert all(raised.values())


class Refusing(plugrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: plugrad.Tensor) -> plugrad.Tensor:
        if x.shape[0] > 2:
            raise ValueError("too long")
        return x.clone()


def test_a_custom_function_whose_forward_raises_is_told_from_one_that_returns() -> None:
    with plugrad.viewer.record() as recording:
        Refusing.apply(plugrad.ones(2, requires_grad=True))
        with pytest.raises(ValueError, match="too long"):
            Refusing.apply(plugrad.ones(3, requires_grad=True))
    data = recording.data
    validate(data)
    assert [call["raised"] for call in data["calls"] if call["op"] == "Refusing"] == [False, True]


def test_nodes_have_sequence_numbers_in_the_order_of_forward_and_accumulators_the_highest() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.viewer.record() as recording:
        y = x.exp()
        loss = (y * 3).sum()
    data = recording.data
    validate(data)
    numbers = {node["name"]: node["sequence"] for node in data["nodes"]}
    assert numbers.pop("AccumulateGrad") == -1
    assert y.grad_fn is not None
    assert numbers["ExpBackward0"] == y.grad_fn._sequence_nr()
    assert numbers["SumBackward0"] == loss.grad_fn._sequence_nr()  # type: ignore[union-attr]
    assert sorted(numbers, key=lambda name: numbers[name]) == [
        "ExpBackward0",
        "MulBackward0",
        "SumBackward0",
    ]


def test_saved_tensors_have_the_version_at_which_they_were_saved() -> None:
    weight = plugrad.ones(2, requires_grad=True)
    x = plugrad.ones(2)
    with plugrad.viewer.record() as recording:
        first = weight * x
        x.add_(1)
        second = weight * x
    data = recording.data
    validate(data)
    versions = [
        saved["version"]
        for node in data["nodes"]
        for saved in node["saved"]
        if saved["name"] == "other"
    ]
    assert versions == [0, 1]
    assert x._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (first + second).sum().backward()


def test_grad_of_inputs_captures_instead_of_accumulating() -> None:
    x = plugrad.ones(2, requires_grad=True)
    w = plugrad.ones(2, requires_grad=True)
    with plugrad.viewer.record() as recording:
        y = x.exp()
        loss = (y * w).sum()
        plugrad.autograd.grad(loss, [x, y], retain_graph=True)
        loss.backward(inputs=[w])
    data = recording.data
    validate(data)
    number = by_name({"nodes": [node for node in data["nodes"] if node["kind"] != "leaf"]})
    assert len(number) == 3
    captures = events(data, "capture")
    labels = [data["nodes"][event["n"]]["label"] for event in captures]
    assert names(data, "capture") == ["ExpBackward0", "AccumulateGrad"]
    assert labels == ["", "x"]
    assert [(event["i"], event["bytes"]) for event in captures] == [(0, 8), (0, 8)]
    # y is on the way to x, so its node runs after the capture; that of x does not.
    course = [
        (event["k"], data["nodes"][event["n"]]["name"])
        for event in data["events"]
        if event["k"] in ("pop", "capture", "run")
    ]
    assert course[4:9] == [
        *(("pop", "ExpBackward0"), ("capture", "ExpBackward0"), ("run", "ExpBackward0")),
        *(("pop", "AccumulateGrad"), ("capture", "AccumulateGrad")),
    ]
    # backward(inputs=...) accumulates.
    assert [event["label"] for event in events(data, "grad")] == ["w"]


def test_operators_within_an_operator_are_its_children() -> None:
    x = plugrad.ones(3)
    with plugrad.viewer.record() as recording:
        plugrad.ones_like(x)
    data = recording.data
    validate(data)
    assert [(call["op"], call["parent"]) for call in data["calls"]] == [
        ("ones_like", -1),
        ("ones", 0),
    ]


def test_the_graph_names_leaves_by_the_programs_variables_and_lists_what_is_saved() -> None:
    weight = plugrad.ones(4, requires_grad=True)
    with plugrad.viewer.record() as recording:
        loss = (weight * weight).sum()
    data = recording.data
    validate(data)
    number = by_name(data)
    product = data["nodes"][number["MulBackward0"]]
    assert product["edges"] == [[number["AccumulateGrad"], 0]] * 2
    assert data["nodes"][number["AccumulateGrad"]]["label"] == "weight"
    assert [(saved["name"], saved["bytes"]) for saved in product["saved"]] == [
        ("self", 16),
        ("other", 16),
    ]
    assert data["calls"][product["call"]]["op"] == "mul.Tensor"
    assert [event["bytes"] for event in events(data, "save")] == [32]
    assert loss.grad_fn is not None


def test_backward_runs_the_nodes_as_they_become_ready_and_frees_what_they_saved() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.viewer.record() as recording:
        y = x.exp()
        loss = (y * 3).sum()
        loss.backward()
    data = recording.data
    validate(data)
    order = ["SumBackward0", "MulBackward0", "ExpBackward0", "AccumulateGrad"]
    for kind in ("ready", "pop", "run", "ran"):
        assert names(data, kind) == order
    number = by_name(data)
    assert events(data, "backward")[0]["roots"] == [number["SumBackward0"]]
    counts = dict(map(tuple, events(data, "dependencies")[0]["counts"]))
    assert counts == {number[name]: 1 for name in order[1:]}
    assert [event["left"] for event in events(data, "count")] == [0, 0, 0]
    assert names(data, "buffer") == order[1:]
    assert [event["bytes"] for event in events(data, "buffer")] == [8, 8, 8]
    # The factor 3 is not a tensor, so it cannot be released.
    assert names(data, "free") == ["ExpBackward0"]
    (grad,) = events(data, "grad")
    assert (grad["n"], grad["label"], grad["bytes"]) == (number["AccumulateGrad"], "x", 8)
    course = kinds(data, "run", "ran", "free", "buffer", "count", "ready", "pop", "grad")
    exp = ["pop", "run", "ran", "free", "buffer", "count", "ready"]
    assert course[-4:] == ["pop", "run", "ran", "grad"]
    assert course[-4 - len(exp) : -4] == exp
    assert kinds(data)[-1] in ("backward_end", "memory")


def test_counts_go_down_to_zero_where_gradients_meet() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.viewer.record() as recording:
        y = x.exp()
        (y + y * y).sum().backward()
    data = recording.data
    validate(data)
    exp = by_name(data)["ExpBackward0"]
    counts = dict(map(tuple, events(data, "dependencies")[0]["counts"]))
    assert counts[exp] == 3
    assert [event["left"] for event in events(data, "count") if event["n"] == exp] == [2, 1, 0]
    assert [event["sum"] for event in events(data, "buffer") if event["n"] == exp] == [
        False,
        True,
        True,
    ]


def test_hooks_of_all_kinds_are_named_in_their_order() -> None:
    x = plugrad.ones(2, requires_grad=True)
    y = x.exp()
    assert y.grad_fn is not None
    y.register_hook(scale)
    y.grad_fn.register_prehook(note)
    y.grad_fn.register_hook(note)
    x.register_hook(scale)
    x.register_post_accumulate_grad_hook(note)
    with plugrad.viewer.record() as recording:
        y.sum().backward()
    data = recording.data
    validate(data)
    found = [
        (data["nodes"][event["n"]]["name"], event["what"], event["name"])
        for event in events(data, "hook")
    ]
    assert found == [
        ("ExpBackward0", "tensor", "scale"),
        ("ExpBackward0", "pre", "note"),
        ("ExpBackward0", "post", "note"),
        ("AccumulateGrad", "tensor", "scale"),
        ("AccumulateGrad", "accumulate", "note"),
    ]


def test_a_retained_graph_frees_nothing_until_it_runs_for_the_last_time() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.viewer.record() as recording:
        loss = x.exp().sum()
        loss.backward(retain_graph=True)
        loss.backward()
    data = recording.data
    validate(data)
    assert names(data, "free") == ["ExpBackward0"]
    assert kinds(data, "backward", "backward_end", "free") == [
        *("backward", "backward_end"),
        *("backward", "free", "backward_end"),
    ]


def test_double_backward_records_the_graph_of_the_gradient() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.viewer.record() as recording:
        (grad,) = plugrad.autograd.grad((x * x * x).sum(), x, create_graph=True)
        grad.sum().backward()
    data = recording.data
    validate(data)
    first, second = events(data, "backward")
    made = [node for node in data["nodes"] if node["call"] >= 0]
    later = [node for node in made if data["calls"][node["call"]]["start"] > first["t"]]
    assert {"MulBackward0", "SumBackward0"} <= {node["name"] for node in later}
    assert data["nodes"][second["roots"][0]]["name"] == "SumBackward0"
    # The first pass captures the gradient of x at its accumulator, which does not run.
    assert len(events(data, "grad")) == 1


def test_a_pass_with_several_roots_starts_with_one_that_leads_to_them() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.viewer.record() as recording:
        plugrad.autograd.backward((x.exp().sum(), x.sin().sum()))
    data = recording.data
    validate(data)
    roots = events(data, "backward")[0]["roots"]
    assert [data["nodes"][root]["name"] for root in roots] == ["SumBackward0"] * 2
    assert [node["kind"] for node in data["nodes"]].count("root") == 1


def test_backward_within_backward_nests() -> None:
    x = plugrad.ones(2, requires_grad=True)

    def run(value: Any) -> Any:
        return value.exp().sin()

    with plugrad.viewer.record() as recording:
        checkpoint(run, x, use_reentrant=True).sum().backward()
    data = recording.data
    validate(data)
    passes = [
        (event["k"], event["b"]) for event in data["events"] if event["k"].startswith("backward")
    ]
    assert passes == [("backward", 0), ("backward", 1), ("backward_end", 1), ("backward_end", 0)]
    assert "CheckpointFunctionBackward" in names(data, "run")


def test_a_custom_function_is_a_call_that_makes_its_node() -> None:
    class Double(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            ctx.save_for_backward(value)
            return value * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2  # the line of its backward

    x = plugrad.ones(2, requires_grad=True)
    with plugrad.viewer.record() as recording:
        Double.apply(x).sum().backward()
    data = recording.data
    validate(data)
    number = by_name(data)
    node = data["nodes"][number["DoubleBackward"]]
    call = data["calls"][node["call"]]
    assert call["op"] == "Double"
    assert [saved["name"] for saved in node["saved"]] == ["tensors[0]"]
    inner = [each for each in data["calls"] if each["parent"] == node["call"]]
    assert [each["op"] for each in inner] == ["mul.Scalar"]
    assert names(data, "free") == ["DoubleBackward"]
    lines = [
        data["sources"][each["source"][0]]["lines"][
            each["source"][1] - data["sources"][each["source"][0]]["first"]
        ]
        for each in data["calls"]
        if each["source"] is not None
    ]
    assert any(line.endswith("# the line of its backward") for line in lines)


def test_modules_are_named_from_the_outermost_on_and_own_their_calls_and_nodes() -> None:
    model = plugrad.nn.Sequential(plugrad.nn.Linear(3, 4), plugrad.nn.ReLU())
    with plugrad.viewer.record() as recording:
        model(plugrad.ones(2, 3)).sum().backward()
    data = recording.data
    validate(data)
    assert data["modules"] == [
        {"name": "", "kind": "Sequential", "parent": -1},
        {"name": "0", "kind": "Linear", "parent": 0},
        {"name": "1", "kind": "ReLU", "parent": 0},
    ]
    homes = {node["name"]: node["module"] for node in data["nodes"]}
    assert (homes["LinearBackward0"], homes["ReluBackward0"], homes["SumBackward0"]) == (1, 2, -1)
    labels = {node["label"] for node in data["nodes"] if node["kind"] == "leaf"}
    assert labels == {"0.weight", "0.bias"}
    assert {event["label"] for event in events(data, "grad")} == labels
    named = {value["name"] for call in data["calls"] for value in call["inputs"]}
    assert labels <= named


def test_steps_of_optimizers_are_events() -> None:
    weight = plugrad.ones(2, requires_grad=True)
    optimizer = plugrad.optim.SGD([weight], lr=0.1)
    weight.sum().backward()
    with plugrad.viewer.record() as recording:
        optimizer.step()
    validate(recording.data)
    assert [event["name"] for event in events(recording.data, "optimizer")] == ["SGD"]


def test_memory_rises_with_results_and_falls_when_they_go() -> None:
    x = plugrad.ones(256)
    with plugrad.viewer.record() as recording:
        y = x + 1
        z = y + 1
        del y
        view = z[2:]
    validate(recording.data)
    assert [event["bytes"] for event in events(recording.data, "memory")] == [1024, 2048, 1024]
    assert view.shape == (254,)


def test_an_error_ends_calls_passes_and_the_recording() -> None:
    class Broken(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            return value.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise ZeroDivisionError

    x = plugrad.ones(2, requires_grad=True)
    recording = plugrad.viewer.record()
    with pytest.raises(ZeroDivisionError), recording:
        Broken.apply(x).sum().backward()
    validate(recording.data)
    assert names(recording.data, "ran")[-1] == "BrokenBackward"
    assert len(events(recording.data, "backward_end")) == 1


def test_nothing_is_recorded_after_the_block_and_nothing_is_left_behind() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.viewer.record() as recording:
        y = x.exp()
    before = len(read(recording._recorder.book))
    y.sum().backward()
    plugrad.nn.Linear(2, 2)(x)
    assert len(read(recording._recorder.book)) == before
    with plugrad.record_dispatch_trace() as trace:
        x.exp()
    # A package that brings a variant of the kernel adds a line.
    assert [line.kind for line in trace if line.kind != "variant"] == ["call", "redispatch"]


def test_after_so_many_events_the_recording_says_that_it_is_not_whole() -> None:
    x = plugrad.ones(2)
    with plugrad.viewer.record(limit=20) as recording:
        for _ in range(50):
            x = x + 1
    validate(recording.data)
    about = recording.data["about"]
    assert about["truncated"] == "The recording ends after 20 events, its limit."
    assert len(recording.data["events"]) < 40


def test_a_recording_says_which_error_ended_its_block() -> None:
    def fail(x: Any) -> None:
        raise ValueError("too much\nof it")

    recording = plugrad.viewer.record()
    with pytest.raises(ValueError, match="too much"), recording:
        fail(plugrad.ones(2).exp())
    validate(recording.data)
    assert recording.data["about"]["truncated"] == "The block ended with ValueError: too much"
    assert recording.data["calls"][-1]["op"] == "exp"


def test_a_recording_of_nothing_says_so() -> None:
    with plugrad.viewer.record() as recording:
        pass
    assert "Nothing was recorded" in str(recording.data["about"]["truncated"])


def test_a_recording_can_be_entered_once_and_read_afterwards() -> None:
    recording = plugrad.viewer.record()
    with recording, pytest.raises(RuntimeError, match="when its `with` block has ended"):
        recording.to_json()
    with pytest.raises(RuntimeError, match="can be made once"), recording:
        pass
    with pytest.raises(ValueError, match="limit must be at least 1, got 0"):
        plugrad.viewer.record(limit=0)


def test_it_is_saved_as_json(tmp_path: Path) -> None:
    with plugrad.viewer.record(title="a title") as recording:
        plugrad.ones(2)
    path = recording.save(tmp_path / "run.json")
    assert json.loads(path.read_text()) == recording.data
    assert recording.data["about"]["title"] == "a title"
    with pytest.raises(ValueError, match=r"must end in \.html or \.json"):
        recording.save(tmp_path / "run.txt")


def test_nodes_are_not_kept_alive() -> None:
    x = plugrad.ones(2, requires_grad=True)
    with plugrad.viewer.record() as recording:
        for _ in range(3):
            y = x.exp()
            del y
    validate(recording.data)
    # A node that is gone is not taken for the next one, though that may be in the same place.
    assert [node["name"] for node in recording.data["nodes"]].count("ExpBackward0") == 3
    memory = [event["bytes"] for event in events(recording.data, "memory")]
    assert memory == [8, 0] * 3


STEPS = ("exp", "square", "double", "join")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=12), st.booleans(), st.booleans())
def test_any_program_gives_a_valid_recording(
    steps: list[str], keep_graph: bool, several: bool
) -> None:
    x = plugrad.full((2,), 0.1, requires_grad=True)
    with plugrad.viewer.record() as recording:
        values = [x]
        for step in steps:
            last = values[-1]
            if step == "exp":
                values.append(last.exp())
            elif step == "square":
                values.append(last * last)
            elif step == "double":
                values.append(2 * last)
            else:
                values.append(last + values[len(values) // 2])
        roots = [values[-1].sum(), values[len(values) // 2].sum()][: 1 + several]
        plugrad.autograd.backward(roots, retain_graph=keep_graph)
    data = recording.data
    validate(data)
    # Oracle: the graph that the roots lead to, walked by hand.
    reachable: set[Any] = set()
    waiting = [root.grad_fn for root in roots]
    while waiting:
        node = waiting.pop()
        if node not in reachable:
            reachable.add(node)
            waiting += [target for target, _ in node.next_functions if target is not None]
    assert len(events(data, "run")) == len(reachable) + several
    assert len(events(data, "grad")) == 1
    assert bool(events(data, "free")) <= (not keep_graph)
    zero = [event["n"] for event in events(data, "count") if event["left"] == 0]
    assert len(zero) == len(set(zero)) == len(events(data, "run")) - 1


def test_the_recorder_costs_nothing_while_nothing_is_recorded() -> None:
    """Nobody listens: neither a trace of this thread nor hooks of modules."""
    from plugrad.nn import global_hooks

    with plugrad.viewer.record():
        assert global_hooks.FORWARD_PRE
    assert not global_hooks.FORWARD_PRE
    assert not global_hooks.FORWARD
    assert inspect.isclass(plugrad.viewer.Recording)
