"""Loading a plugin that is interrupted leaves nothing behind, wherever it happens.

The oracle is the state before: operators, kernels, rules, families, tags, modules, cases.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import plugrad
from plugrad import plugins
from plugrad.codegen.load import _families
from plugrad.dispatch.backends.active import ActiveBackend, active_backends
from plugrad.dispatch.operator import _fallbacks, all_operators, find_operator
from plugrad.errors import PluginError
from plugrad.library import Library, custom_op, get_vmap_rule
from plugrad.library.custom_op import definition_of
from plugrad.library.library import _owners
from plugrad.ops.batching.table import _registered
from plugrad.ops.namespace import TAGS
from plugrad.plugins.loading.manager import PluginManager
from plugrad.tensor.calls.overridable import OVERRIDES
from plugrad.testing.cases.registry import _registered as registered_cases
from tests.core.plugins.conftest import FakeSite

AT_IMPORT = """
import plugrad
from plugrad import library
from plugrad.plugins import Backend, hookimpl
from plugrad.testing.cases import OpCase, OpSample, T, register
lib = library.Library("zz_half", "DEF")
lib.define("first(Tensor self) -> Tensor", tags=library.Tag.pointwise)
lib.define("writes_(Tensor(a!) self) -> Tensor(a!)")
lib.impl("first", lambda x: x, "CompositeExplicitAutograd")
lib.impl("first", lambda x: x, "CPU")
lib.fallback(library.fallthrough_kernel, "Tracer")
lib.load("- func: third(Tensor self) -> Tensor\\n  composite: f\\n  doc: d.\\n", {"f": lambda x: x})
library.define("zz_half::second", "(Tensor x) -> Tensor")
library.register_fake("zz_half::first", lambda x: x.new_empty(x.shape))
library.register_autograd("zz_half::first", lambda ctx, grad: grad)
library.register_vmap("zz_half::first", lambda info, dims, x: (x, dims[0]))
library.register_vmap("plugrad::cumsum", lambda info, dims, x, dim: (x, dims[0]))
library.register_autocast("zz_half::first", "cpu", plugrad.float32)
library.Library("plugrad", "IMPL").impl("exp", lambda a: a, "CPU", allow_override=True)
schema = "(Tensor x) -> Tensor"
made = library.custom_op("zz_half::made", lambda x: x + 1, mutates_args=(), schema=schema)
made.register_kernel("cpu", lambda a: a * 1, raw=True)
made.register_fake(lambda x: x)
made.register_autograd(lambda ctx, grad: grad)
made.register_vmap(lambda info, dims, x: (x, dims[0]))
made.register_autocast("cpu", plugrad.float32)
register(OpCase("zz_half::made", [OpSample((T((2,)),))]))
from plugrad.codegen import load
entry = "- func: fourth(Tensor self) -> Tensor\\n  composite: f\\n  doc: d.\\n"
load(entry, namespace="zz_half", functions={"f": lambda x: x})
""".strip().splitlines()

HOOKS = """
@hookimpl
def plugrad_ops():
    return [lib]

@hookimpl
def plugrad_backends():
    return [Backend("zz_half", list)]

@hookimpl
def plugrad_kernels():
    return {"cpu": {"sin": abs, "zz_half::second": abs}}

@hookimpl
def plugrad_namespaces():
    return {"zz_half": "plugrad_half.plugin"}
"""

FAILING_HOOK = """
@hookimpl
def plugrad_backward_begin():
    pass

@hookimpl
def plugrad_kernels():
    raise OSError("half way")
"""


def state() -> dict[str, Any]:
    """All that registrations change."""
    cpu = [active for active in active_backends() if active.name == "cpu"]
    return {
        "kernels": {
            op.qualified_name: {key: op.kernel_for(key) for key in op.registered_keys()}
            for op in all_operators()
        },
        "owners": sorted(_owners),
        "tags": dict(TAGS),
        "fallbacks": {key: list(stack) for key, stack in _fallbacks.items() if stack},
        "rules": {name: list(rules) for name, rules in _registered.items() if rules},
        "vmap": get_vmap_rule("plugrad::cumsum"),
        "families": {name: list(found) for name, found in _families.items() if found},
        "made": definition_of("zz_half::made"),
        "modules": sorted(name for name in sys.modules if name.startswith("plugrad_half")),
        "public": sorted(vars(plugrad)),
        "overrides": sorted(OVERRIDES.functions),
        "cases": [case.op for case in registered_cases],
        "observers": len(plugins.get_manager().hook.plugrad_backward_begin.get_hookimpls()),
        "sin": [[each.owner for each in active.candidates("sin", "")] for active in cpu],
    }


def assert_same_state(before: dict[str, Any], where: str) -> None:
    after = state()
    for name, expected in before.items():
        assert after[name] == expected, f"{name}, {where}"


def write(site: FakeSite, source: str) -> None:
    """The plugin's module, as if it had been edited."""
    (site.folder / "plugrad_half" / "plugin.py").write_text(source)
    for cached in (site.folder / "plugrad_half").rglob("*.pyc"):
        cached.unlink()


@pytest.fixture
def half(site: FakeSite, manager: PluginManager, cpu: ActiveBackend) -> FakeSite:
    site.add("plugrad-half", "1.0", "half", "")
    manager.rescan()
    return site


@pytest.mark.parametrize("error", ["OSError('half way')", "KeyboardInterrupt"])
def test_after_each_registration_a_failure_undoes_all(
    half: FakeSite, manager: PluginManager, error: str
) -> None:
    before = state()
    for count in range(4, len(AT_IMPORT) + 1):
        lines = [*AT_IMPORT[:count], f"raise {error}"]
        write(half, "\n".join(lines))
        if error == "KeyboardInterrupt":
            with pytest.raises(KeyboardInterrupt):
                manager.load("half")
            assert manager.discovered()["half"].status == "not loaded"
        else:
            assert manager.load("half").problem == "OSError: half way"
            manager.unload("half")
        assert_same_state(before, f"after {lines[-2]}")
    write(half, "\n".join(AT_IMPORT) + HOOKS)
    assert manager.load("half").status == "loaded"
    assert plugrad.ops.zz_half.made(plugrad.ones(1)).tolist() == [1.0]
    manager.unload("half")
    assert_same_state(before, "after unload")


def test_a_hook_that_fails_undoes_the_others(half: FakeSite, manager: PluginManager) -> None:
    before = state()
    hooks = HOOKS.split("@hookimpl\ndef plugrad_kernels")[0] + FAILING_HOOK
    write(half, "\n".join(AT_IMPORT) + hooks)
    assert manager.load("half").problem == "OSError: half way"
    assert_same_state(before, "after the hooks")


class Interrupt:
    """Raises KeyboardInterrupt at the nth line that runs in some of the core's modules."""

    # Where registrations and plugins are seen to, above what compiles.
    FOLDERS = tuple(str(Path("plugrad") / name) for name in ("plugins", "library", "codegen"))

    def __init__(self, at: int) -> None:
        self.left = at
        self.counted = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        name = frame.f_code.co_filename
        ours = any(f"{folder}/" in name for folder in self.FOLDERS)
        return self.line if ours or "plugrad_half" in name else None

    def line(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            self.counted += 1
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.line

    def during(self, work: Callable[[], object]) -> bool:
        """Whether it came."""
        outer = sys.gettrace()
        sys.settrace(self)
        try:
            work()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(outer)
        return False


def test_an_interrupt_anywhere_leaves_nothing_behind(
    half: FakeSite, manager: PluginManager
) -> None:
    write(half, "\n".join(AT_IMPORT) + HOOKS)
    manager.load("half")
    manager.unload("half")
    before = state()
    whole = Interrupt(0)
    assert not whole.during(lambda: manager.load("half"))
    manager.unload("half")
    came = 0
    for at in range(1, whole.counted, max(whole.counted // 40, 1)):
        came += Interrupt(at).during(lambda: manager.load("half"))
        if manager.discovered()["half"].status != "loaded":
            assert_same_state(before, f"line {at} of {whole.counted}")
        assert manager.load("half").status == "loaded"
        assert find_operator("zz_half::made") is not None
        manager.unload("half")
        assert_same_state(before, f"after line {at} of {whole.counted}")
    assert came > 20


def test_an_interrupt_between_import_and_taking_up_leaves_nothing_behind(
    half: FakeSite, manager: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(half, "\n".join(AT_IMPORT) + HOOKS)
    before = state()

    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PluginManager, "_take_up", interrupted)
        with pytest.raises(KeyboardInterrupt):
            manager.load("half")
    assert manager.discovered()["half"].status == "not loaded"
    assert_same_state(before, "before it is taken up")
    assert manager.load("half").status == "loaded"
    manager.unload("half")
    assert_same_state(before, "after it was loaded")


def test_an_unloading_that_is_interrupted_is_finished_by_the_next_call(
    half: FakeSite, manager: PluginManager
) -> None:
    write(half, "\n".join(AT_IMPORT) + HOOKS)
    before = state()
    manager.load("half")
    whole = Interrupt(0)
    whole.during(lambda: manager.unload("half"))
    for at in range(1, whole.counted, max(whole.counted // 25, 1)):
        assert manager.load("half").status == "loaded"
        assert plugrad.ops.zz_half.made(plugrad.ones(1)).tolist() == [1.0]
        Interrupt(at).during(lambda: manager.unload("half"))
        manager.unload("half")
        assert_same_state(before, f"line {at} of {whole.counted}")


def test_a_module_registered_by_hand_that_is_interrupted_is_not_kept(
    half: FakeSite, manager: PluginManager
) -> None:
    hook = "@hookimpl\ndef plugrad_ops():\n    raise KeyboardInterrupt\n"
    write(half, f"from plugrad.plugins import hookimpl\n\n{hook}")
    import plugrad_half.plugin as module

    with pytest.raises(KeyboardInterrupt):
        manager.register(module, "by_hand")
    assert "by_hand" not in manager.discovered()


def test_a_library_that_cannot_define_leaves_nothing() -> None:
    before = state()
    with Library("zz_alone", "DEF") as lib:
        lib.define("one(Tensor x) -> Tensor")
        with pytest.raises(RuntimeError, match="defined already"):
            lib.define("one(Tensor x, int n) -> Tensor")
        assert plugrad.ops.zz_alone.one.default._schema is not None
        assert len(find_operator("zz_alone::one").schema.arguments) == 1
    assert_same_state(before, "after the library")


def test_a_custom_operator_that_cannot_be_made_leaves_its_former_definition() -> None:
    def function(x: plugrad.Tensor) -> plugrad.Tensor:
        return x * 2

    made = custom_op("zz_alone::kept", function, mutates_args=())
    before = state()
    schema, tag = "(Tensor x) -> Tensor", plugrad.library.Tag.inplace
    with pytest.raises(ValueError, match=r"Tag\.inplace must write to its first"):
        custom_op("zz_alone::kept", function, mutates_args=(), schema=schema, tags=tag)
    with pytest.raises(ValueError, match="expected a backend's name such as 'cpu', got 3"):
        made.register_kernel(["meta", 3], function)
    assert_same_state(before, "after what was refused")
    assert made(plugrad.ones(1)).tolist() == [2.0]
    made._lib._destroy()


def test_a_custom_operator_with_a_wrong_device_type_is_not_defined() -> None:
    before = state()
    with pytest.raises(ValueError, match="expected a backend's name such as 'cpu', got 3"):
        custom_op(
            "zz_alone::gone",
            lambda x: x,
            mutates_args=(),
            schema="(Tensor x) -> Tensor",
            device_types=[3],
        )
    assert_same_state(before, "after what was refused")


def test_a_plugin_that_fails_to_extend_the_command_line_leaves_no_kernels(
    half: FakeSite, manager: PluginManager
) -> None:
    before = state()
    failing = "\n@hookimpl\ndef plugrad_cli(app):\n    raise OSError('no terminal')\n"
    write(half, "\n".join(AT_IMPORT) + HOOKS + failing)
    manager.extend_cli(None)
    assert manager.discovered()["half"].problem == "OSError: no terminal"
    assert_same_state(before, "after the command line")
    x = plugrad.zeros(1)
    assert x.exp().tolist() == [1.0]
    with pytest.raises(PluginError):
        manager.load_operators("half")
