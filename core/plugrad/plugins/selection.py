"""Chooses the device of tensors that are made without one, and keeps the reason.

From strongest to weakest: the `device` argument, ``with plugrad.device(...)``,
`set_default_device`, `plugrad.config.set`, `PLUGRAD_DEVICE` or `PLUGRAD_BACKEND`, the
configuration file, the CPU.
"""

from __future__ import annotations

from typing import Final

from plugrad.device import (
    CPU,
    Device,
    as_device,
    chosen_device,
    context_device,
    set_thread_default,
    thread_default,
)
from plugrad.dispatch.backends.active import canonical_device, find_backend
from plugrad.dispatch.first_use import InFirstUse
from plugrad.errors import BackendNotFoundError, PluginError
from plugrad.plugins.loading.process import get_manager


class Choice:
    """A device and the source of the choice."""

    def __init__(self, device: Device, source: str) -> None:
        self.device = device
        self.source = source

    def __str__(self) -> str:
        return f"Device '{self.device}' was chosen by {self.source}."


class _Configured:
    """The choice that environment and configuration file make, read at the first use."""

    def __init__(self) -> None:
        self.choice: Choice | None = None


_configured: Final = _Configured()


def choose_device(device: object = None) -> Choice:
    """The device for a `device` argument, None if it was not given, and the source of the choice.

    Raises:
        ConfigError: environment or configuration file cannot be used.
        TypeError, RuntimeError: `device` names no device.
    """
    if device is not None:
        wanted = as_device(device)
        return Choice(wanted, f"the argument device='{wanted}'")
    inner = context_device()
    if inner is not None:
        return Choice(inner, f"the block `with plugrad.device('{inner}')`")
    default = thread_default()
    if default is not None:
        return Choice(default, f"plugrad.set_default_device('{default}')")
    return configured_choice()


def default_device() -> Device:
    """The device that `choose_device` names when no argument is given."""
    chosen = chosen_device()
    if chosen is not None:
        return chosen
    return (_configured.choice or configured_choice()).device


def set_default_device(device: object) -> None:
    """Make tensors on `device` from now on, on this thread; None returns to the configuration.

    Per thread, as in PyTorch: a thread does not inherit the choice of the one that started it.
    The threads of devices that run a backward pass use the calling thread's choice.

    Raises:
        TypeError: `device` is neither a Device nor a string.
        BackendNotFoundError: its backend is not installed.

    >>> import plugrad
    >>> plugrad.set_default_device("meta")
    >>> plugrad.ones(2).device
    device(type='meta')
    >>> plugrad.set_default_device(None)
    """
    set_thread_default(None if device is None else canonical_device(device))


def get_default_device() -> Device:
    """The device on which tensors are made that are given none.

    >>> import plugrad
    >>> plugrad.get_default_device()
    device(type='cpu')
    """
    return canonical_device(default_device())


def accelerator() -> str:
    """The device type that a bare number stands for: the default device's, or "cuda".

    Raises:
        RuntimeError: the default device is the host, and there is no GPU.
    """
    chosen = default_device()
    if not chosen.is_host:
        return chosen.type
    try:
        if find_backend("cuda").backend.device_count() > 0:
            return "cuda"
    except (BackendNotFoundError, PluginError):
        pass
    raise RuntimeError("Cannot access accelerator device when none is available.")


def configured_choice() -> Choice:
    """What the environment and the configuration file choose; they are read once per process."""
    choice = _configured.choice
    if choice is None:
        with InFirstUse():
            choice = _read_configuration()
        _configured.choice = choice
    return choice


def forget_configuration() -> None:
    """Read environment and configuration file again at the next use."""
    from plugrad.plugins.config.current import forget

    forget()


def forget_choice() -> None:
    """Choose again at the next use, because the configuration may have changed."""
    _configured.choice = None


def source_of(backend: str) -> str:
    """What chose a backend, unless it was an argument or named in code; otherwise empty."""
    choice = _configured.choice
    if choice is None or choice.device.type != backend or choice.source == _BUILT_IN:
        return ""
    return choice.source


def how_to_choose(backend: str = "") -> str:
    """A sentence that says how to choose another device.

    Args:
        backend: the backend to name; by default a published one that this machine can use and that
            is not chosen already, with the install command if no other is installed.
    """
    from plugrad.plugins.loading.messages import has_nvidia_gpu
    from plugrad.plugins.loading.published import distribution_of

    chosen = choose_device().device.type
    plugins = get_manager().discovered()
    usable = [
        name
        for name in ("cuda", "jax", "cpu")  # the fastest first
        if name != chosen and (name != "cuda" or has_nvidia_gpu())
    ]
    there = [name for name in usable if name in plugins and not plugins[name].disabled]
    absent = [name for name in usable if name not in plugins]
    name = backend or (there or absent or [""])[0]
    if not name:
        return ""
    before = "Choose another with"
    if not backend and not there:
        before = f"For another, pip install {distribution_of(name)}, and choose it with"
    return (
        f"{before} device='{name}' in code, PLUGRAD_BACKEND={name} in the "
        f'environment, or backend = "{name}" in plugrad.toml.'
    )


_BUILT_IN: Final = "the built-in default"


def _read_configuration() -> Choice:
    # Loading what reads it takes milliseconds, which `import plugrad` need not pay.
    from plugrad.plugins.config.current import current_config

    config = current_config()
    for name in config.plugins:
        get_manager().load(name)
    setting = config.device()
    if setting is None:
        return Choice(CPU, _BUILT_IN)
    return Choice(as_device(setting.value), setting.source)
