"""The profile object: its life, its arguments, its totals."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad.autograd.profiler import profile


def test_a_profile_knows_whether_it_is_on() -> None:
    assert not plugrad.autograd._profiler_enabled()
    with profile():
        assert plugrad.autograd._profiler_enabled()
        with plugrad.record_dispatch_trace():
            assert plugrad.autograd._profiler_enabled()
    assert not plugrad.autograd._profiler_enabled()


def test_an_unfinished_profile_says_so() -> None:
    prof = profile()
    assert str(prof) == repr(prof) == "<unfinished torch.autograd.profile>"
    assert prof.function_events is None
    with prof:
        assert str(prof) == "<unfinished torch.autograd.profile>"
        with pytest.raises(AssertionError, match="Expected profiling results"):
            prof.key_averages()
    assert prof.function_events == []


def test_it_is_entered_once() -> None:
    prof = profile()
    with prof, pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        prof.__enter__()
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        prof.__enter__()


def test_a_disabled_profile_does_nothing() -> None:
    with profile(enabled=False) as prof:
        assert prof is None
        assert not plugrad.autograd._profiler_enabled()


def test_it_ends_with_an_error_and_lets_it_through() -> None:
    prof = profile()
    with pytest.raises(KeyError), prof:
        raise KeyError
    assert not plugrad.autograd._profiler_enabled()
    assert prof.function_events == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"use_cpu": False}, "Device-only events supported only with Kineto"),
        ({"use_cpu": False, "use_kineto": True}, "No activities specified for the profiler"),
    ],
)
def test_there_must_be_something_to_profile(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        profile(**arguments)


def test_other_devices_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="The foo is not a valid device option") as caught:
        profile(use_device="foo")
    assert caught[0].filename == __file__


def test_the_total_counts_every_moment_once() -> None:
    x = plugrad.ones(8, 8, requires_grad=True)
    with profile() as prof:
        (x @ x).movedim(0, 1).sum().backward()
    events = prof.function_events
    assert events is not None
    top = sum(event.cpu_time_total for event in events if event.cpu_parent is None)
    assert prof.self_cpu_time_total == pytest.approx(top)
    total = prof.total_average()
    assert total.key == "Total"
    assert total.count == len(events)
    assert total.self_cpu_time_total == pytest.approx(top)


def test_averages_group_by_name_shapes_and_overload() -> None:
    x, y = plugrad.ones(2), plugrad.ones(3)
    with profile(record_shapes=True) as prof:
        for _ in range(2):
            x * x
        y * y
        y * 2
    (by_name,) = prof.key_averages()
    assert (by_name.key, by_name.count, by_name.input_shapes) == ("plugrad::mul", 4, "")
    by_shape = prof.key_averages(group_by_input_shape=True)
    assert {str(e.input_shapes): e.count for e in by_shape} == {
        "[[2], [2]]": 2,
        "[[3], [3]]": 1,
        "[[3], []]": 1,
    }
    by_overload = prof.key_averages(group_by_overload_name=True)
    assert {e.overload_name: e.count for e in by_overload} == {"Tensor": 3, "Scalar": 1}
    assert by_name.cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in by_shape))
    assert by_name.cpu_time == by_name.cpu_time_total / 4


def test_floating_point_operations_are_those_that_pytorch_counts(torch_oracle: ModuleType) -> None:
    def count(lib: Any, prefix: str) -> dict[str, int]:
        a, b = lib.ones(4, 5), lib.ones(5, 6)
        with lib.autograd.profiler.profile(with_flops=True) as prof:
            a @ b
            lib.bmm(a[None], b[None])
            lib.addmm(lib.ones(6), a, b)
            a + a
            a * a
            lib.nn.functional.conv2d(lib.ones(2, 3, 8, 8), lib.ones(4, 3, 3, 3), padding=1)
        found = {event.key.removeprefix(prefix): event.flops for event in prof.key_averages()}
        return {name: found[name] for name in ("mm", "bmm", "addmm", "add", "mul")} | {
            "conv": sum(value for name, value in found.items() if "conv" in name)
        }

    mine = count(plugrad, "plugrad::")
    assert mine == count(torch_oracle, "aten::")
    assert mine["mm"] == 240


def test_operations_count_once_where_they_are_done() -> None:
    a, b = plugrad.ones(4, 5), plugrad.ones(5, 6)
    with profile(with_flops=True) as prof:
        a @ b
    assert prof.total_average().flops == 240


def test_nothing_is_left_behind_when_it_is_off() -> None:
    from plugrad.dispatch.local_state import current_state

    before = current_state().trace
    with profile(profile_memory=True, with_stack=True):
        plugrad.ones(2) * 2
    assert current_state().trace is before
