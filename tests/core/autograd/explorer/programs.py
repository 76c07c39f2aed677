"""Programs to explore: small backward passes over the engine's threads, which check themselves."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import plugrad
from plugrad.testing.engines.explored import explored_engine
from plugrad.testing.engines.naive import naive_grad
from plugrad.testing.engines.schedule_explorer import Program, Scheduler
from tests.core.autograd.devices.graphs import leaf, then

PROGRAMS: dict[str, Callable[[], Program]] = {}


def program(make: Callable[[], Program]) -> Callable[[], Program]:
    """Add a program to the table: `make()` builds what all its runs share."""
    PROGRAMS[make.__name__] = make
    return make


class InjectedError(Exception):
    pass


def right(x: Any, expected: list[float]) -> None:
    """Check a leaf's gradient and remove it."""
    assert x.grad is not None, "no gradient arrived"
    found = x.grad.tolist()
    x.grad = None
    assert found == expected, f"{found} instead of {expected}"


def passes(y: Any, *checks: tuple[Any, list[float]]) -> Program:
    """The main thread runs backward from `y` once."""

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler):
            y.backward(retain_graph=True)
            for x, expected in checks:
                right(x, expected)

    return run


@program
def one_device() -> Program:
    x = leaf("toy:0", 3.0)
    return passes((x * x).sum(), (x, [6.0]))


@program
def two_devices() -> Program:
    x = leaf("toy:0", 3.0)
    return passes((x.to("toy:1") * 2).sum(), (x, [2.0]))


@program
def a_diamond_across_devices() -> Program:
    x, y = leaf("toy:0", 3.0), leaf("cpu", 5.0)
    total = (x.to("toy:1") * 2).to("cpu") + (x * 4).to("cpu") * y
    return passes(total.sum(), (x, [22.0]), (y, [12.0]))


@program
def a_sum_of_two_devices_gradients() -> Program:
    x = leaf("cpu", 3.0)
    total = x.to("toy:0").to("cpu") + x.to("toy:1").to("cpu") + x
    return passes(total.sum(), (x, [3.0]))


@program
def two_roots() -> Program:
    x, y = leaf("toy:0", 3.0), leaf("toy:1", 5.0)
    roots = [x * 2, y * 4]

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler):
            plugrad.autograd.backward([root.sum() for root in roots], retain_graph=True)
            right(x, [2.0])
            right(y, [4.0])

    return run


@program
def captured_gradients() -> Program:
    x = leaf("toy:0", 3.0)
    middle = x * 2
    y = (middle.to("toy:1") * 5).sum()

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler):
            grads = plugrad.autograd.grad(y, [x, middle], retain_graph=True)
        assert [g.tolist() for g in grads] == [[10.0], [5.0]]

    return run


def nested(devices: list[str], at_the_end: Callable[[], None]) -> Callable[[Any], Any]:
    """A node's work: run a pass on the first device, where a node runs one on the next."""

    def node(grad: Any) -> Any:
        if not devices:
            at_the_end()
            return None
        with plugrad.enable_grad():
            x = leaf(devices[0], 0.0)
            then(x, nested(devices[1:], at_the_end)).sum().backward()
        return grad + x.grad.item()

    return node


def nothing() -> None:
    pass


def nests(devices: list[str], max_depth: int) -> Program:
    """Passes within passes; the gradient of the outermost leaf counts them."""

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler, max_depth):
            x = leaf(devices[0], 0.0)
            then(x, nested(devices[1:], nothing)).sum().backward()
            right(x, [float(len(devices))])

    return run


@program
def a_pass_within_a_pass() -> Program:
    return nests(["toy:0", "toy:0"], 60)


@program
def devices_that_wait_for_each_other() -> Program:
    return nests(["toy:0", "toy:1", "toy:0"], 60)


@program
def a_host_pass_that_another_thread_takes_over() -> Program:
    return nests(["cpu", "cpu", "cpu"], 1)


@program
def device_passes_that_another_thread_takes_over() -> Program:
    return nests(["toy:0", "toy:0", "toy:0"], 1)


@program
def every_pass_is_taken_over() -> Program:
    return nests(["toy:0", "cpu", "toy:1"], 0)


def together(*works: Callable[[], None]) -> Callable[[Scheduler], None]:
    """Run functions at once: the first on the thread that calls, the others on new ones."""

    def run(scheduler: Scheduler) -> None:
        others = [
            scheduler.start_thread(f"caller {index + 1}", work)
            for index, work in enumerate(works[1:])
        ]
        works[0]()
        for other in others:
            other.join()

    return run


@program
def two_callers_of_one_graph() -> Program:
    x = leaf("toy:0", 3.0)
    y = (x * x).to("cpu").sum()

    def work() -> None:
        y.backward(retain_graph=True)

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler):
            together(work, work)(scheduler)
            right(x, [12.0])

    return run


@program
def two_callers_of_graphs_that_share_a_node() -> Program:
    x = leaf("cpu", 3.0)
    shared = x * x
    one, two = (shared.to("toy:0") * 2).sum(), (shared.to("toy:1") * 4).sum()

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler):
            together(
                lambda: one.backward(retain_graph=True), lambda: two.backward(retain_graph=True)
            )(scheduler)
            right(x, [36.0])

    return run


@program
def two_callers_share_a_leaf() -> Program:
    x = leaf("toy:0", 3.0)
    one, two = (x * 2).sum(), (x.to("toy:1") * 4).sum()

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler):
            together(
                lambda: one.backward(retain_graph=True), lambda: two.backward(retain_graph=True)
            )(scheduler)
            right(x, [6.0])

    return run


@program
def two_callers_nest_across_the_same_devices() -> Program:
    def nest(devices: list[str]) -> None:
        x = leaf(devices[0], 0.0)
        then(x, nested(devices[1:], nothing)).sum().backward()
        right(x, [float(len(devices))])

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler, 1):
            together(lambda: nest(["toy:0", "toy:1"]), lambda: nest(["toy:1", "toy:0"]))(scheduler)

    return run


def fails(y: Any, x: Any, expected: list[float], failing: list[bool]) -> Program:
    """A pass that fails, and another one, on the same engine, that does not."""

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler):
            failing[0] = True
            try:
                y.backward(retain_graph=True)
            except InjectedError:
                pass
            else:
                raise AssertionError("the error was lost")
            x.grad = None
            failing[0] = False
            y.backward(retain_graph=True)
            right(x, expected)

    return run


def failing_node(failing: list[bool]) -> Callable[[Any], None]:
    def node(grad: Any) -> None:
        if failing[0]:
            raise InjectedError

    return node


@program
def an_error_on_one_device() -> Program:
    failing = [True]
    x = leaf("toy:0", 3.0)
    y = then(x, failing_node(failing)).to("toy:1") + x.to("toy:1")
    return fails(y.sum(), x, [2.0], failing)


@program
def errors_on_two_devices() -> Program:
    failing = [True]
    x = leaf("cpu", 3.0)
    one, two = (then(x.to(device), failing_node(failing)) for device in ("toy:0", "toy:1"))
    return fails((one.to("cpu") + two.to("cpu")).sum(), x, [2.0], failing)


@program
def an_error_on_the_host_while_a_device_works() -> Program:
    failing = [True]
    x = leaf("cpu", 3.0)
    y = then(x, failing_node(failing)) + (x.to("toy:0") * 2).to("cpu")
    return fails(y.sum(), x, [3.0], failing)


@program
def an_error_within_a_nested_pass() -> Program:
    def fail() -> None:
        raise InjectedError

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler, 1):
            x = leaf("toy:0", 0.0)
            try:
                then(x, nested(["toy:1", "toy:0"], fail)).sum().backward()
            except InjectedError:
                pass
            else:
                raise AssertionError("the error was lost")
            assert x.grad is None
            then(x, nested(["toy:1"], nothing)).sum().backward()
            right(x, [2.0])

    return run


@program
def another_caller_s_error() -> Program:
    x = leaf("toy:0", 3.0)
    failing = then(x, failing_node([True])).to("toy:1").sum()
    working = (x.to("toy:1") * 2).sum()

    def fail() -> None:
        try:
            failing.backward(retain_graph=True)
        except InjectedError:
            return
        raise AssertionError("the error was lost")

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler):
            together(lambda: working.backward(retain_graph=True), fail)(scheduler)
            right(x, [2.0])

    return run


def interrupted(scheduler: Scheduler, work: Callable[[], None]) -> bool:
    """Whether an interrupt of the main thread, which comes at any time, ended `work`."""

    def interrupt() -> None:
        scheduler.main.interrupt(KeyboardInterrupt("ctrl-c"))

    ended = False
    try:
        other = scheduler.start_thread("ctrl-c", interrupt)
        work()
        ended = True
        other.join()
    except KeyboardInterrupt:
        pass
    return not ended


@program
def an_interrupt() -> Program:
    x = leaf("toy:0", 3.0)
    y = (x.to("toy:1") * 2).to("cpu").sum()

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler):
            if not interrupted(scheduler, lambda: y.backward(retain_graph=True)):
                right(x, [2.0])
            x.grad = None
            y.backward(retain_graph=True)
            right(x, [2.0])

    return run


@program
def an_interrupt_while_another_thread_drives() -> Program:
    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler, 0):
            x = leaf("toy:0", 0.0)
            y = then(x, nested(["cpu"], nothing)).sum()
            if not interrupted(scheduler, lambda: y.backward(retain_graph=True)):
                right(x, [2.0])
            x.grad = None
            y.backward(retain_graph=True)
            right(x, [2.0])

    return run


@program
def threads_that_are_stopped_during_a_pass() -> Program:
    x = leaf("toy:0", 3.0)
    y = (x.to("toy:1") * 2).to("toy:0").sum()

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler) as engine:
            together(lambda: y.backward(retain_graph=True), engine.stop)(scheduler)
            right(x, [2.0])
            y.backward(retain_graph=True)
            right(x, [2.0])

    return run


@program
def callbacks_from_two_devices() -> Program:
    called: list[str] = []

    def queue(name: str) -> Callable[[Any], None]:
        def node(grad: Any) -> None:
            engine = plugrad.autograd.Variable._execution_engine
            engine.queue_callback(lambda: called.append(name))

        return node

    x = leaf("cpu", 3.0)
    one, two = (then(x.to(device), queue(device)) for device in ("toy:0", "toy:1"))
    y = (one.to("cpu") + two.to("cpu")).sum()

    def run(scheduler: Scheduler) -> None:
        called.clear()
        with explored_engine(scheduler):
            y.backward(retain_graph=True)
            right(x, [2.0])
        assert sorted(called) == ["toy:0", "toy:1"]

    return run


FIVE = ["cpu", "toy:0", "toy:1", "toy:2", "toy:3"]


@program
def branches_on_five_devices() -> Program:
    x = leaf("cpu", 3.0)
    own = [leaf(device, float(index)) for index, device in enumerate(FIVE)]
    branches = [(x.to(device) * y).to("cpu") for device, y in zip(FIVE, own, strict=True)]
    total = branches[0]
    for branch in branches[1:]:
        total = total + branch
    return passes(total.sum(), (x, [10.0]), *[(y, [3.0]) for y in own])


@program
def two_callers_go_round_five_devices_in_both_directions() -> Program:
    x = leaf("cpu", 3.0)

    def round_trip(devices: list[str]) -> Any:
        y = x
        for device in devices:
            y = y.to(device) * 2
        return y.sum()

    one, two = round_trip(FIVE[1:]), round_trip(FIVE[:0:-1])

    def run(scheduler: Scheduler) -> None:
        with explored_engine(scheduler):
            together(
                lambda: one.backward(retain_graph=True), lambda: two.backward(retain_graph=True)
            )(scheduler)
            right(x, [32.0])

    return run


@program
def a_random_graph_over_five_devices() -> Program:
    """Each step takes what two earlier ones gave to a device of its own; all gradients are whole
    numbers, so that the order in which they are added does not matter."""
    chance = random.Random(7)
    leaves = [leaf(device, 1.0, 2.0) for device in FIVE]
    values = list(leaves)
    for step in range(12):
        device = FIVE[step % len(FIVE)]
        a, b = chance.sample(values, 2)
        values.append(a.to(device) * chance.randrange(3) + b.to(device))
    y = sum([value.to("cpu").sum() for value in values], plugrad.zeros((), dtype=plugrad.float64))
    expected = [grad.tolist() for grad in naive_grad([y], leaves)]
    return passes(y, *zip(leaves, expected, strict=True))
