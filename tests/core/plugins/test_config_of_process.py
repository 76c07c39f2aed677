"""`plugrad.config`, and what follows the configuration: devices, fallbacks, options, plugins."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import plugrad
from plugrad import config
from plugrad.config import ConfigError
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend, find_backend
from plugrad.plugins import Backend, get_manager
from plugrad.plugins.config import threads
from plugrad.plugins.loading.manager import PluginManager
from plugrad.plugins.selection import choose_device
from tests.core.plugins.conftest import FakeSite


class Tunable(Backend):
    """A backend with two options."""

    def __init__(self) -> None:
        super().__init__("tunable", array_type=list)
        self.received: list[dict[str, object]] = []

    def options(self) -> Mapping[str, object]:
        return {"threads": 1, "precision": "high"}

    def configure(self, options: Mapping[str, object]) -> None:
        if options["threads"] == 0:
            raise ValueError("threads must be positive")
        self.received.append(dict(options))


@pytest.fixture(autouse=True)
def nothing_configured(site: FakeSite, manager: PluginManager, project: Path) -> None:
    """An empty project, in which nothing real is installed."""


def activated(backend: Backend) -> Backend:
    activate_backend(backend)
    deactivate_backend(backend.name)
    return backend


def test_code_counts_before_the_environment_and_that_before_the_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert config.setting("device").source == "the built-in default"
    (project / "plugrad.toml").write_text('device = "jax:1"\nprefer = ["a"]\n')
    monkeypatch.setenv("PLUGRAD_DEVICE", "cuda:2")
    config.reset()
    assert config.get("prefer") == ("a",)
    assert config.get("device") == "cuda:2"
    with config.set(device="foo"):
        assert config.get("device") == "foo"
        with config.set({"device": "bar"}, prefer=["b", "c"]):
            assert config.get("device") == "bar"
            assert config.get("prefer") == ("b", "c")
            assert str(choose_device()) == (
                "Device 'bar' was chosen by plugrad.config.set(device='bar')."
            )
        assert config.get("device") == "foo"
    assert str(choose_device()) == (
        "Device 'cuda:2' was chosen by PLUGRAD_DEVICE in the environment."
    )


def test_without_a_block_a_setting_stays_until_it_is_reset() -> None:
    config.set(device="foo")
    assert config.get("device") == "foo"
    config.reset()
    assert config.get("device") == ""


def test_a_block_takes_back_its_own_settings_only() -> None:
    outer = config.set(device="foo")
    config.set(device="bar")
    outer.__exit__()
    assert config.get("device") == "bar"


def test_settings_are_those_of_all_threads() -> None:
    seen: list[object] = []
    with config.set(fallback="cpu"):
        thread = threading.Thread(target=lambda: seen.append(config.get("fallback")))
        thread.start()
        thread.join()
    assert seen == ["cpu"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"devise": "cpu"}, r"plugrad\.config\.set\(\): unknown key 'devise'; did you mean 'dev"),
        ({"device": 3}, r"plugrad\.config\.set\(device=3\) must be a string, got 3 \(int\)"),
        ({"device": "foo:x"}, "Invalid device string: 'foo:x'"),
        ({"prefer": "foo"}, "must be a list of strings, got 'foo'"),
        ({"device": "foo", "backend": "bar"}, "set one of them"),
        ({"backends": {"foo": 3}}, r"'backends\.foo' must be a table"),
        ({"backends.foo": 3}, r"'backends\.foo' must have the form 'backends\.<name>\.<option>'"),
        ({"backends": {"foo": {"fallback": 3}}}, r"backends\.foo\.fallback=3\) must be a string"),
    ],
)
def test_unusable_settings_are_refused_as_a_whole(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        config.set({"disable": ["x"], **settings})
    assert config.get("disable") == ()


def test_asking_for_a_key_that_nobody_set_names_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="nothing is set for 'devise'; did you mean 'device'"):
        config.get("devise")


def test_options_reach_the_backend_over_its_defaults(project: Path) -> None:
    (project / "plugrad.toml").write_text("[backends.tunable]\nthreads = 4\n")
    config.reset()
    backend = Tunable()
    activated(backend)
    with config.set({"backends.tunable.threads": 8}):
        assert config.get("backends.tunable.threads") == 8
        activated(backend)
    assert backend.received == [
        {"threads": 4, "precision": "high"},
        {"threads": 8, "precision": "high"},
    ]


class Threaded(Backend):
    """A backend that computes on 8 threads, and records the numbers that are set."""

    def __init__(self) -> None:
        super().__init__("threaded", array_type=list)
        self.told: list[int] = []

    def num_threads(self) -> int:
        return self.told[-1] if self.told else 8

    def set_num_threads(self, count: int) -> None:
        self.told.append(count)


@pytest.fixture
def threaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Threaded]:
    """It is not active yet, and the number of threads is not configured."""
    monkeypatch.delenv("PLUGRAD_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads._said, "count", None)
    monkeypatch.setattr(threads._said, "before", {})
    yield Threaded()
    deactivate_backend("threaded")


def test_threads_are_those_of_the_call_else_of_the_configuration(
    threaded: Threaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUGRAD_NUM_THREADS", "3")
    activate_backend(threaded)
    assert threaded.told == [3]
    with config.set(num_threads=2):
        assert threaded.told == [3, 2]
    assert threaded.told == [3, 2, 3]
    threads.allow(5)
    assert threaded.told == [3, 2, 3, 5]
    with config.set(num_threads=2):
        assert threaded.told == [3, 2, 3, 5]


def test_a_backend_uses_its_own_number_of_threads_while_nobody_says_another(
    threaded: Threaded,
) -> None:
    activate_backend(threaded)
    assert threaded.told == []
    with config.set(num_threads=2):
        assert threaded.told == [2]
    assert threaded.told == [2, 8]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "4"])
def test_a_number_of_threads_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"num_threads=.* must be an integer from 1 on, got"):
        config.set(num_threads=wrong)


@pytest.mark.parametrize("wrong", ["0", "four", "1.5"])
def test_a_variable_for_threads_that_is_no_number_is_named(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUGRAD_NUM_THREADS", wrong)
    with pytest.raises(ConfigError, match=r"PLUGRAD_NUM_THREADS .* must be an integer from 1 on"):
        config.get("num_threads")


def test_an_option_that_the_backend_has_not_is_named_with_the_nearest_one(project: Path) -> None:
    (project / "plugrad.toml").write_text("[backends.tunable]\nthread = 4\n")
    config.reset()
    message = r"'backends\.tunable\.thread' in .*: backend 'tunable' has no option 'thread'; did y"
    with pytest.raises(ConfigError, match=message):
        activate_backend(Tunable())
    with (
        config.set(backends={"plain": {"size": 1}}),
        pytest.raises(ConfigError, match="backend 'plain' has no option 'size'; it has no options"),
    ):
        activate_backend(Backend("plain", array_type=list))


def test_a_value_that_the_backend_cannot_use_is_an_error_with_its_source() -> None:
    with (
        config.set(backends={"tunable": {"threads": 0}}),
        pytest.raises(ConfigError, match=r"threads=0\)\): threads must be positive"),
    ):
        activate_backend(Tunable())


def test_a_backend_that_only_takes_options_takes_any() -> None:
    class Open(Backend):
        def configure(self, options: Mapping[str, object]) -> None:
            self.received = dict(options)

    backend = Open("open", array_type=list)
    with config.set(backends={"open": {"anything": [1, 2], "fallback": "cpu"}}):
        activated(backend)
    assert backend.received == {"anything": [1, 2]}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "own"),
        ({"fallback": "cpu"}, "cpu"),
        ({"fallback": "none"}, ""),
        ({"fallback": None}, ""),
        ({"fallback": "cpu", "backends": {"tunable": {"fallback": "none"}}}, ""),
        ({"backends": {"tunable": {"fallback": "cpu"}}}, "cpu"),
        ({"backends": {"other": {"fallback": "cpu"}}}, "own"),
    ],
)
def test_the_configured_fallback_counts_before_the_backends_own(
    settings: dict[str, object], expected: str
) -> None:
    backend = Tunable()
    backend.fallback = "own"
    active = activate_backend(backend)
    assert active.fallback == "own"
    with config.set(settings):
        assert active.fallback == expected
        deactivate_backend("tunable")
        assert activate_backend(backend).fallback == expected
    assert find_backend("tunable").fallback == "own"
    deactivate_backend("tunable")


def test_a_stronger_layer_counts_before_a_more_special_key(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "plugrad.toml").write_text('[backends.tunable]\nfallback = "cpu"\n')
    monkeypatch.setenv("PLUGRAD_FALLBACK", "none")
    config.reset()
    assert activate_backend(Tunable()).fallback == ""
    deactivate_backend("tunable")


def test_a_missing_operator_is_computed_by_the_configured_fallback(cpu: object) -> None:
    class Empty(Backend):
        pass

    import numpy as np

    activate_backend(Empty("empty", array_type=np.ndarray))
    x = plugrad.ones(2, device="empty")
    with pytest.raises(plugrad.plugins.OperatorNotFoundError):
        x.sin()
    with (
        config.set(fallback="cpu"),
        pytest.warns(plugrad.plugins.HostFallbackWarning, match="sin has no kernel"),
    ):
        assert x.sin().shape == (2,)
    with pytest.raises(plugrad.plugins.OperatorNotFoundError):
        x.sin()


def test_a_file_that_cannot_be_used_is_told_when_something_is_loaded(
    project: Path, site: FakeSite
) -> None:
    (project / "plugrad.toml").write_text("disable = 3\n")
    config.reset()
    site.backend("foo")
    with pytest.raises(ConfigError, match=r"'disable' in .*plugrad\.toml must be a list"):
        get_manager().backend("foo")


def nested(depth: int) -> dict[str, Any]:
    """A dict in a dict in a dict."""
    table: dict[str, Any] = {}
    for _ in range(depth):
        table = {"a": table}
    return table


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({3: "cpu"}, ConfigError, r"keys must be strings, got 3 \(int\)"),
        ({"backends": {"cpu": {3: 1}}}, ConfigError, r"keys must be strings, got 3 \(int\)"),
        ({"kernels": nested(3000)}, ConfigError, "must be the name of a plugin or distribution"),
        ({"backends": nested(3000)}, None, ""),
        ({"device": nested(30_000)}, ConfigError, r"must be a string, got a value \(dict\)"),
        ({"device": 10**5000}, ConfigError, r"must be a string, got a value \(int\)"),
        ({"disable": "x" * 10**6}, ConfigError, r"must be a list of strings, got '.{199}\.\.\. \("),
        ("device", TypeError, r"settings must be a mapping, got 'device' \(str\)"),
    ],
)
def test_settings_of_any_kind_get_a_clear_error(
    settings: Any, error: type[Exception] | None, message: str
) -> None:
    expected = pytest.raises(error, match=message) if error else contextlib.nullcontext()
    with expected, plugrad.config.set(settings):
        assert plugrad.config.get("device") == ""


@pytest.mark.parametrize("key", [None, 3, ["device"]])
def test_a_key_that_is_no_string_is_named(key: Any) -> None:
    with pytest.raises(TypeError, match="a key must be a string, got "):
        plugrad.config.get(key)
