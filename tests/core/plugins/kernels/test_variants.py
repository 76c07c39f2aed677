"""Variants of a kernel: which one runs follows from the processor, the dtype, the size, the layout.

The oracle is the declaration: each kernel gives its own number.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.config import ConfigError
from plugrad.dispatch.backends.active import ActiveBackend, activate_backend, deactivate_backend
from plugrad.errors import OperatorNotFoundError, PluginWarning
from plugrad.plugins import Variant, hookimpl
from plugrad.plugins.loading.manager import PluginManager
from plugrad_cpu import features
from plugrad_cpu.backend import CpuBackend
from tests.core.plugins.conftest import FakeSite

pytestmark = pytest.mark.usefixtures("cpu", "project")

HERE = {"sse2": True, "avx2": True, "avx512f": True, "amx": False}


@pytest.fixture(autouse=True)
def processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has AVX-512 and no AMX, whatever this machine has; what the configuration allows of it is
    the backend's table."""
    monkeypatch.setattr(features, "_features_here", lambda: HERE)


def gives(number: float) -> Callable[..., Any]:
    return lambda a, *rest: np.full_like(a, number)


def declines(a: Any, *rest: Any) -> Any:
    return NotImplemented


def plugin_with(variants: Any, backend: str = "cpu", **tables: Any) -> Any:
    module = types.ModuleType("moon")
    vars(module)["plugrad_variants"] = hookimpl(lambda: {backend: variants})
    if tables:
        vars(module)["plugrad_kernels"] = hookimpl(lambda: {backend: tables})
    return module


@contextmanager
def installed(
    manager: PluginManager, *variants: Variant, name: str = "moon", **tables: Any
) -> Iterator[None]:
    manager.register(plugin_with(list(variants), **tables), name)
    yield
    manager.unregister(name)


def exp(count: int = 4, dtype: Any = plugrad.float32) -> float:
    """exp of zeros: 1 by the backend's own kernel."""
    return float(plugrad.zeros(count, dtype=dtype).exp()[0].item())


def test_a_variant_runs_from_its_least_size_on(manager: PluginManager) -> None:
    with installed(manager, Variant("exp", gives(7), name="wide", least=10)):
        assert [exp(9), exp(10), exp(11), exp(9)] == [1.0, 7.0, 7.0, 1.0]


def test_a_variant_runs_up_to_its_greatest_size(manager: PluginManager) -> None:
    small = Variant("exp", gives(7), name="small", least=3, most=10)
    large = Variant("exp", gives(5), name="large", least=12, priority=1)
    with installed(manager, small, large):
        assert [exp(2), exp(3), exp(10), exp(11), exp(12)] == [1.0, 7.0, 7.0, 1.0, 5.0]
    assert repr(small) == "<Variant 'small' of 'exp': from 3 up to 10 elements>"
    assert Variant("exp", gives(7), name="one", most=0).needs() == "up to 0 elements"


def test_the_highest_priority_is_asked_first_whatever_the_order(manager: PluginManager) -> None:
    low = Variant("exp", gives(2), name="low", priority=-1)
    middle = Variant("exp", gives(3), name="middle", least=3)
    high = Variant("exp", gives(4), name="high", priority=1, least=6)
    with installed(manager, low, middle, high):
        assert [exp(2), exp(3), exp(6)] == [2.0, 3.0, 4.0]


def test_a_variant_serves_its_dtypes_alone(manager: PluginManager) -> None:
    one = Variant("exp", gives(7), name="one", dtypes=["float32", plugrad.bfloat16])
    with installed(manager, one):
        dtypes = (plugrad.float32, plugrad.float64, plugrad.bfloat16, plugrad.float32)
        assert [exp(4, dtype) for dtype in dtypes] == [7.0, 1.0, 7.0, 7.0]


def test_a_variant_for_contiguous_arrays_leaves_others_alone(manager: PluginManager) -> None:
    with installed(manager, Variant("exp", gives(7), name="flat", contiguous=True)):
        x = plugrad.zeros(3, 4)
        found = [y.exp().sum().item() for y in (x, x.t(), x[:, :2], x[:1], x[::2])]
        assert found == [84.0, 12.0, 6.0, 28.0, 8.0]


def test_contiguity_is_asked_of_every_operand(manager: PluginManager) -> None:
    both = Variant("add.Tensor", lambda a, b: np.full_like(a, 7), name="flat", contiguous=True)
    with installed(manager, both):
        x, y = plugrad.zeros(2, 2), plugrad.zeros(2, 2)
        assert (x + y).sum().item() == 28.0
        assert (x + y.t()).sum().item() == 0.0


def test_one_that_declines_leaves_the_call_to_the_next(manager: PluginManager) -> None:
    first = Variant("exp", declines, name="first", priority=2)
    second = Variant("exp", gives(5), name="second", priority=1, least=3)
    with installed(manager, first, second), plugrad.record_dispatch_trace() as events:
        assert [exp(2), exp(3)] == [1.0, 5.0]
    told = [(e.kind, e.kernel) for e in events if e.kind in ("declined", "variant")]
    assert told == [
        ("declined", "moon: first"),
        ("declined", "moon: first"),
        ("variant", "moon: second"),
    ]


def test_where_all_decline_a_decomposition_runs(manager: PluginManager) -> None:
    library = plugrad.library.Library("moonlight", "DEF")
    library.define("glow(Tensor x) -> Tensor")
    library.impl("glow", lambda x: x + 5, "CompositeExplicitAutograd")
    with installed(manager, Variant("moonlight::glow", declines, name="first")):
        assert plugrad.ops.moonlight.glow(plugrad.zeros(2)).tolist() == [5.0, 5.0]
    library._destroy()


def test_an_operator_of_which_every_kernel_declines_is_told_of(manager: PluginManager) -> None:
    library = plugrad.library.Library("moonlight", "DEF")
    library.define("glow(Tensor x) -> Tensor")
    with (
        installed(manager, Variant("moonlight::glow", declines, name="first")),
        pytest.raises(OperatorNotFoundError, match="declined by returning NotImplemented"),
    ):
        plugrad.ops.moonlight.glow(plugrad.zeros(2))
    library._destroy()


def test_a_list_of_tensors_counts_by_its_first(manager: PluginManager) -> None:
    def joined(arrays: Any, dim: int) -> Any:
        return np.concatenate(arrays, dim) + 7

    with installed(manager, Variant("cat", joined, name="wide", least=3)):
        x = plugrad.zeros(3)
        assert plugrad.cat([x, x]).sum().item() == 42.0
        assert plugrad.cat([x[:2], x]).sum().item() == 0.0


def test_the_gradient_of_a_variant_is_the_operators(manager: PluginManager) -> None:
    with installed(manager, Variant("exp", gives(7), name="wide", least=2)):
        x = plugrad.zeros(2, requires_grad=True)
        x.exp().sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [7.0, 7.0]  # exp's gradient is its result


@pytest.mark.parametrize(
    ("capability", "expected"),
    [("", 3.0), ("avx512", 3.0), ("avx2", 2.0), ("default", 1.0)],
)
def test_the_configuration_restricts_what_variants_may_need(
    manager: PluginManager, capability: str, expected: float
) -> None:
    two = Variant("exp", gives(2), name="avx2", features=["avx2"])
    three = Variant("exp", gives(3), name="avx512", features=["avx2", "avx512f"], priority=1)
    never = Variant("exp", gives(4), name="amx", features=["amx"], priority=2)
    with installed(manager, two, three, never):
        with plugrad.config.set(cpu_capability=capability):
            assert exp() == expected
        assert exp() == 3.0


def test_a_variable_restricts_from_the_start(
    manager: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUGRAD_CPU_CAPABILITY", "avx2")
    plugrad.config.reset()
    deactivate_backend("cpu")
    activate_backend(CpuBackend())
    one = Variant("exp", gives(3), name="avx512", features=["avx512f"])
    two = Variant("sin", gives(2), name="avx2", features=["avx2"])
    with installed(manager, one, two):
        assert exp() == 1.0
        assert plugrad.zeros(1).sin().item() == 2.0


def test_a_capability_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"='avx3'\): unknown processor capability 'avx3'"):
        plugrad.config.set(cpu_capability="avx3")
    with pytest.raises(ConfigError, match="must be a string, got 2"):
        plugrad.config.set(cpu_capability=2)


def test_a_choice_of_the_configuration_rules_out_variants_of_others(
    manager: PluginManager, site: FakeSite
) -> None:
    site.add(
        "plugrad-sun",
        "2.0",
        "sun",
        """
        from plugrad.plugins import hookimpl

        @hookimpl
        def plugrad_kernels():
            return {"cpu": {"exp": lambda a: a + 42}}
        """,
    )
    manager.rescan()
    with installed(manager, Variant("exp", gives(7), name="wide"), exp=gives(8)):
        assert exp() == 7.0
        with plugrad.config.set({"kernels.cpu.exp": "sun"}):
            assert exp() == 42.0
        with plugrad.config.set({"kernels.cpu.exp": "moon"}):
            assert exp() == 7.0
        with plugrad.config.set(prefer=["sun"]):
            assert exp() == 42.0
        with plugrad.config.set(prefer=["moon"]):
            assert exp() == 7.0
        with plugrad.config.set(disable=["moon"]):
            assert exp() == 1.0
    manager.unload("sun")


def test_what_a_package_lacks_is_asked_once_at_the_first_large_call(
    manager: PluginManager,
) -> None:
    asked: list[str] = []

    def problem() -> str:
        asked.append("asked")
        return "libmoon is not installed"

    one = Variant("exp", gives(7), name="moon", least=3, problem=problem)
    with installed(manager, one):
        assert exp(2) == 1.0
        assert asked == []
        assert [exp(3), exp(4)] == [1.0, 1.0]
        assert asked == ["asked"]


def test_everything_is_undone_when_the_package_goes(manager: PluginManager) -> None:
    for _ in range(2):
        with installed(manager, Variant("exp", gives(7), name="wide")):
            assert exp() == 7.0
        assert exp() == 1.0


def test_operators_without_variants_keep_their_kernel(
    manager: PluginManager, cpu: ActiveBackend
) -> None:
    before = cpu.raw_kernel("sin", ""), cpu.raw_kernel("exp", "")
    with installed(manager, Variant("exp", gives(7), name="wide")):
        assert cpu.raw_kernel("sin", "") is before[0]
        assert cpu.raw_kernel("exp", "") is not before[1]
    assert cpu.raw_kernel("exp", "") is before[1]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"operator": 3}, TypeError, "operator must be a string, got int"),
        ({"name": ""}, ValueError, "name must not be empty"),
        ({"kernel": 3}, TypeError, "kernel must be callable, got int"),
        ({"features": "avx2"}, TypeError, "features must be a list of strings, got str"),
        ({"features": [2]}, TypeError, "features must be a list of strings, got int in it"),
        ({"dtypes": ["float31"]}, ValueError, "no dtype 'float31'; did you mean 'float32'"),
        ({"least": -1}, ValueError, "least must be at least 0, got -1"),
        ({"least": 1.5}, TypeError, "least must be an integer, got float"),
        ({"most": 2.5}, TypeError, "most must be an integer, got float"),
        ({"least": 4, "most": 3}, ValueError, "most must be at least 4, which least is, got 3"),
        ({"most": -1}, ValueError, "most must be at least 0, which least is, got -1"),
        ({"priority": True}, TypeError, "priority must be an integer, got bool"),
        ({"contiguous": 1}, TypeError, "contiguous must be True or False, got int"),
        ({"problem": "none"}, TypeError, "problem must be callable, got str"),
    ],
)
def test_a_wrong_declaration_is_refused(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    given: dict[str, Any] = {"operator": "exp", "kernel": gives(1), "name": "one", **arguments}
    with pytest.raises(error, match=text):
        Variant(given.pop("operator"), given.pop("kernel"), **given)


@pytest.mark.parametrize(
    ("variants", "text"),
    [
        (3, "TypeError: variants must come as a list of Variant objects, got int"),
        ([3], "TypeError: variants must be Variant objects, got int in the list"),
        (
            [Variant("exp", gives(1), name="one"), Variant("exp", gives(2), name="one")],
            "PluginError: there are two variants 'one' of 'exp'",
        ),
        ("plugrad_nowhere:VARIANTS", "ModuleNotFoundError: No module named 'plugrad_nowhere'"),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_variants_that_cannot_be_had_disturb_nothing_else(
    manager: PluginManager, variants: Any, text: str
) -> None:
    module = plugin_with(variants, sin=gives(7))
    with pytest.warns(PluginWarning, match=text):
        manager.register(module, "moon")
    with plugrad.config.set(prefer=["moon"]):
        assert plugrad.zeros(1).sin().item() == 7.0
        assert exp() == 1.0
    manager.unregister("moon")


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (
            Variant("exo", gives(1), name="one"),
            "a variant 'one' for 'exo', but there is no operator of that name; did you mean 'exp'?",
        ),
        (
            Variant("sin", gives(1), name="one", features=["avx_2"]),
            "a variant 'one' for 'sin' that needs 'avx_2', which is unknown to the backend; did "
            "you mean 'avx2'?",
        ),
    ],
)
def test_a_misspelt_need_is_told_of_and_the_variant_left_out(
    manager: PluginManager, one: Variant, text: str
) -> None:
    module = plugin_with([one, Variant("exp", gives(7), name="fine")])
    with pytest.warns(PluginWarning) as caught:
        manager.register(module, "moon")
    assert text in str(caught[0].message)
    assert exp() == 7.0
    assert plugrad.zeros(1).sin().item() == 0.0
    manager.unregister("moon")


SOURCE = """
    import numpy as np
    from plugrad.plugins import Variant, hookimpl

    VARIANTS = [Variant("exp", lambda a: np.full_like(a, 7), name="wide", least=4)]

    @hookimpl
    def plugrad_variants():
        return {"cpu": "plugrad_fast.plugin:VARIANTS"}
"""


def test_an_installed_package_that_brings_nothing_else_is_loaded_with_the_backend(
    site: FakeSite, manager: PluginManager, project: Path
) -> None:
    site.add("plugrad-fast", "1.0", "", SOURCE, adds_to="plugrad")
    manager.rescan()
    deactivate_backend("cpu")
    activate_backend(CpuBackend())
    plugrad.config.reset()
    manager.load_all()
    with plugrad.record_dispatch_trace() as events:
        assert [exp(3), exp(4)] == [1.0, 7.0]
    ran = [(e.op, e.kernel) for e in events if e.kind == "variant"]
    assert ran == [("plugrad::exp", "plugrad-fast 1.0: wide")]
    # The line before it names the kernel that runs if no variant does.
    assert not any(e.foreign for e in events if e.kind == "redispatch")


def test_a_profile_names_the_variant(manager: PluginManager) -> None:
    with installed(manager, Variant("exp", gives(7), name="wide", least=4)):
        with plugrad.autograd.profiler.profile() as found:
            exp(3)
            exp(4)
        events = [event for event in found.function_events if event.name == "plugrad::exp"]
        assert [event.kernel for event in events] == ["", "moon: wide"]
        (average,) = [one for one in found.key_averages() if one.key == "plugrad::exp"]
        assert average.kernel == "moon: wide"
        table = found.key_averages().table()
        assert "moon: wide" in table
    with plugrad.autograd.profiler.profile() as found:
        exp(4)
    assert "Kernel" not in found.key_averages().table()
