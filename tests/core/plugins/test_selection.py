"""Which device is chosen, and what is said about the choice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugrad.device import as_device
from plugrad.dispatch.backends import active as registry
from plugrad.errors import BackendNotFoundError
from plugrad.plugins import Backend
from plugrad.plugins.config import ConfigError
from plugrad.plugins.loading import messages
from plugrad.plugins.loading.manager import PluginManager
from plugrad.plugins.selection import (
    choose_device,
    default_device,
    forget_configuration,
    get_default_device,
    how_to_choose,
    set_default_device,
)
from tests.core.plugins.conftest import FakeSite


@pytest.fixture
def alpha() -> Iterator[str]:
    """An active backend with three devices."""

    class Alpha(Backend):
        def __init__(self) -> None:
            super().__init__("alpha", array_type=list)

        def device_count(self) -> int:
            return 3

    registry.activate_backend(Alpha())
    yield "alpha"
    registry.deactivate_backend("alpha")


@pytest.fixture(autouse=True)
def _no_default_device(project: Path) -> Iterator[None]:
    yield
    set_default_device(None)


def test_cpu_is_chosen_when_nothing_else_is() -> None:
    choice = choose_device()
    assert choice.device is as_device("cpu")
    assert str(choice) == "Device 'cpu' was chosen by the built-in default."


def test_precedence_from_file_to_argument(
    project: Path, monkeypatch: pytest.MonkeyPatch, alpha: str
) -> None:
    (project / "plugrad.toml").write_text('backend = "jax"\n')
    forget_configuration()
    assert str(choose_device()) == (
        f"Device 'jax' was chosen by 'backend' in {project / 'plugrad.toml'}."
    )
    monkeypatch.setenv("PLUGRAD_DEVICE", "cuda:1")
    forget_configuration()
    assert str(choose_device()) == (
        "Device 'cuda:1' was chosen by PLUGRAD_DEVICE in the environment."
    )
    set_default_device("alpha:1")
    assert str(choose_device()) == (
        "Device 'alpha:1' was chosen by plugrad.set_default_device('alpha:1')."
    )
    with as_device("alpha:2"):
        assert str(choose_device()) == (
            "Device 'alpha:2' was chosen by the block `with plugrad.device('alpha:2')`."
        )
        assert str(choose_device("cuda")) == (
            "Device 'cuda' was chosen by the argument device='cuda'."
        )
    assert choose_device().device is as_device("alpha:1")


def test_default_device_is_the_one_that_is_explained(project: Path, alpha: str) -> None:
    (project / "plugrad.toml").write_text('backend = "jax"\n')
    assert default_device() is choose_device().device
    set_default_device(alpha)
    assert default_device() is choose_device().device
    with as_device("cuda"):
        assert default_device() is choose_device().device


def test_blocks_nest_and_end() -> None:
    with as_device("alpha"):
        with as_device("beta"):
            assert default_device() is as_device("beta")
        assert default_device() is as_device("alpha")
    assert default_device() is as_device("cpu")


def test_a_block_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), as_device("alpha"):
        raise KeyError
    assert default_device() is as_device("cpu")


def test_blocks_and_defaults_belong_to_one_thread(alpha: str) -> None:
    seen: list[object] = []
    set_default_device("alpha")
    with as_device("beta"):
        thread = threading.Thread(target=lambda: seen.append(default_device()))
        thread.start()
        thread.join()
    assert seen == [as_device("cpu")]


def test_configuration_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_device() is as_device("cpu")
    monkeypatch.setenv("PLUGRAD_BACKEND", "jax")
    assert default_device() is as_device("cpu")
    forget_configuration()
    assert default_device() is as_device("jax")


def test_default_device_is_completed(alpha: str) -> None:
    set_default_device("alpha")
    assert get_default_device() is as_device("alpha:0")


def test_none_goes_back_to_the_configuration(alpha: str) -> None:
    set_default_device("alpha")
    set_default_device(None)
    assert default_device() is as_device("cpu")


def test_default_device_must_be_installed(manager: PluginManager) -> None:
    with pytest.raises(BackendNotFoundError, match="No backend named 'nope' is installed"):
        set_default_device("nope")
    assert default_device() is as_device("cpu")


def test_missing_backend_says_who_wanted_it(
    manager: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUGRAD_BACKEND", "nope")
    with pytest.raises(
        BackendNotFoundError, match=r"\(chosen by PLUGRAD_BACKEND in the environment\)"
    ):
        get_default_device()


def test_installed_backend_is_loaded_when_it_is_selected(
    site: FakeSite, manager: PluginManager
) -> None:
    site.backend("lazy")
    try:
        set_default_device("lazy")
        assert registry.find_backend("lazy").backend is manager.backend("lazy")
    finally:
        registry.deactivate_backend("lazy")


def test_unusable_configuration_is_an_error_at_the_first_use(project: Path) -> None:
    (project / "plugrad.toml").write_text('bakend = "cpu"\n')
    with pytest.raises(ConfigError, match="did you mean 'backend'"):
        default_device()


def test_configured_plugins_are_loaded_at_the_first_use(
    project: Path, site: FakeSite, manager: PluginManager
) -> None:
    site.backend("foo")
    (project / "plugrad.toml").write_text('plugins = ["foo"]\n')
    default_device()
    assert manager.discovered()["foo"].status == "loaded"


def test_how_to_choose_names_all_three_ways() -> None:
    text = how_to_choose("jax")
    assert "device='jax'" in text
    assert "PLUGRAD_BACKEND=jax" in text
    assert 'backend = "jax" in plugrad.toml' in text


def test_how_to_choose_names_what_is_installed_and_not_chosen(
    site: FakeSite, manager: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "has_nvidia_gpu", lambda: False)
    for name in ("cpu", "cuda", "jax"):
        site.backend(name)
    text = how_to_choose()
    assert text.startswith("Choose another with device='jax' in code")
    assert "cuda" not in text
    monkeypatch.setattr(messages, "has_nvidia_gpu", lambda: True)
    assert "device='cuda'" in how_to_choose()


def test_how_to_choose_says_what_to_install_where_nothing_else_is(
    site: FakeSite, manager: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "has_nvidia_gpu", lambda: False)
    site.backend("cpu")
    assert how_to_choose().startswith("For another, pip install plugrad-jax, and choose it with")
