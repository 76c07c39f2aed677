"""Threads that load plugins at once: each is imported once, and no thread waits forever."""

from __future__ import annotations

import importlib
import random
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.backends.active import active_backends, find_backend
from plugrad.plugins.loading.manager import PluginManager
from tests.core.plugins.conftest import FakeSite

SECONDS = 60.0


@pytest.fixture
def gates() -> Iterator[Any]:
    """A module of events that plugins' code and the test share, and a count of imports."""
    module: Any = ModuleType("loading_gates")
    module.imports = []
    module.in_hook, module.in_import = threading.Event(), threading.Event()
    module.seconds = SECONDS
    sys.modules["loading_gates"] = module
    yield module
    del sys.modules["loading_gates"]


def run_all(*functions: Callable[[], object]) -> list[object]:
    """Results of functions that begin at once; a thread that does not end is a failure."""
    barrier = threading.Barrier(len(functions))
    results: list[object] = [None] * len(functions)

    def run(place: int) -> None:
        barrier.wait()
        try:
            results[place] = functions[place]()
        except Exception as error:
            results[place] = error

    threads = [
        threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(functions))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    return results


SLOW = """
    import loading_gates
    from plugrad.plugins import Backend, hookimpl

    loading_gates.imports.append(__name__)
    # Other threads run while this one sorts.
    for _ in range(200):
        sorted(range(1000), key=lambda i: -i)

    from plugrad_{name}.part import SIZE

    class SlowBackend(Backend):
        made = []

        def __init__(self):
            super().__init__({name!r}, array_type=list)
            self.made.append(1)

        def configure(self, options):
            loading_gates.imports.append("configured {name}")

    @hookimpl
    def plugrad_backends():
        from plugrad_{name}.later import NUMBER

        return [SlowBackend]
"""


def test_many_threads_import_and_configure_each_plugin_once(
    site: FakeSite, manager: PluginManager, gates: Any, project: object
) -> None:
    names = ["sloth", "snail", "tortoise", "koala"]
    for name in names:
        site.add(f"plugrad-{name}", "1.0", name, SLOW.format(name=name))
        site.module(f"plugrad_{name}.part", "SIZE = 1")
        # A part that uses the plugins of others while it is imported.
        other = names[names.index(name) - 1]
        site.module(
            f"plugrad_{name}.later",
            f"from plugrad.plugins import get_manager\nNUMBER = get_manager().load({other!r})\n",
        )
    rng = random.Random(0)
    order = [name for _ in range(6) for name in rng.sample(names, len(names))]
    found = run_all(*(partial(find_backend, name) for name in order))
    assert [one for one in found if isinstance(one, Exception)] == []
    assert len({id(one) for one in found}) == len(names)
    assert sorted(gates.imports) == sorted(
        [f"plugrad_{name}.plugin" for name in names] + [f"configured {name}" for name in names]
    )
    assert {active.name for active in active_backends()} == set(names)


MEETING = """
    import loading_gates
    from plugrad.library import Library
    from plugrad.plugins import hookimpl

    lib = Library("meeting", "DEF")
    lib.define("f(Tensor self) -> Tensor")

    @hookimpl
    def plugrad_namespaces():
        loading_gates.in_hook.set()
        loading_gates.in_import.wait(loading_gates.seconds)
        import plugrad_meeting.user
        return {"meeting": "plugrad_meeting.user"}
"""

USER = """
    import loading_gates
    import plugrad
    from plugrad.plugins import get_manager

    loading_gates.in_import.set()
    loading_gates.in_hook.wait(loading_gates.seconds)
    get_manager().load("meeting")
    F = plugrad.ops.meeting.f
"""


def test_a_thread_that_imports_and_one_that_loads_do_not_wait_for_each_other(
    site: FakeSite, manager: PluginManager, gates: Any, project: object
) -> None:
    site.add("plugrad-meeting", "1.0", "meeting", MEETING)
    site.module("plugrad_meeting.user", USER)
    loaded, imported = run_all(
        lambda: manager.load("meeting"), lambda: importlib.import_module("plugrad_meeting.user")
    )
    assert not isinstance(loaded, Exception)
    assert not isinstance(imported, Exception)
    assert manager.discovered()["meeting"].problem == ""
    assert plugrad.ops.meeting.f.overloads() == ["default"]
    manager.unload("meeting")


def test_threads_that_unload_and_load_leave_a_whole_plugin(
    site: FakeSite, manager: PluginManager, project: object
) -> None:
    source = """
        from plugrad.library import Library
        lib = Library("shuttle", "DEF")
        lib.define("f(Tensor self) -> Tensor")
        lib.define("g(Tensor self) -> Tensor")
    """
    site.add("plugrad-shuttle", "1.0", "shuttle", source)

    def come_and_go(place: int) -> None:
        for _ in range(5):
            manager.load("shuttle")
            if place % 2:
                manager.unload("shuttle")

    with ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(come_and_go, place) for place in range(6)]:
            future.result(SECONDS)
    plugin = manager.load("shuttle")
    assert plugin.problem == ""
    assert sorted(manager.operators(plugin)) == ["shuttle::f", "shuttle::g"]
    manager.unload("shuttle")
