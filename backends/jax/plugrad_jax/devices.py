"""The devices of JAX in the order in which plugrad counts them: `jax:0`, `jax:1`, ..."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import metadata
from typing import Any

import jax
import jax.extend.backend

import plugrad
from plugrad_jax.precision import is_wide


@functools.cache
def all_devices() -> tuple[Any, ...]:
    """The devices of JAX's default platform, as `jax.devices()` lists them, then the other
    platforms'; only this process's own.

    The first call starts the platforms, which takes a while with a GPU.
    """
    found = list(jax.local_devices())
    for platform in jax.extend.backend.backends():
        found += [device for device in jax.local_devices(backend=platform) if device not in found]
    return tuple(found)


def problem() -> str | None:
    """Why JAX has no device, and how to fix it; None if it has one."""
    try:
        all_devices()
    except Exception as error:  # JAX fails in several ways, with assertions among them
        said = str(error).partition("\n")[0] or type(error).__name__
        return (
            f"JAX starts no platform ({said}): install JAX for the one that JAX_PLATFORMS names, "
            "or unset JAX_PLATFORMS"
        )
    return None


def describe() -> dict[str, str]:
    """Versions, and what each device is."""
    facts = {"JAX": jax.__version__, "jaxlib": metadata.version("jaxlib")}
    if problem() is None:
        for index, each in enumerate(all_devices()):
            kind = "" if each.device_kind == each.platform else f", {each.device_kind}"
            facts[str(_named(index))] = f"{each.platform}:{each.id}{kind}"
    facts["64-bit numbers"] = "on" if is_wide() else "off"
    return facts


@functools.cache
def _indices() -> dict[Any, int]:
    return {device: index for index, device in enumerate(all_devices())}


def index_of(device: Any) -> int:
    """plugrad's index of one of JAX's devices; ValueError if JAX does not list it."""
    found = _indices().get(device)
    if found is None:
        listed = ", ".join(str(each) for each in all_devices())
        raise ValueError(f"{device} is not one of the devices that JAX lists: {listed}")
    return found


def device(platform: Any, index: int = 0) -> plugrad.device:
    """plugrad's device for one of JAX's: by the name of its platform, or the device itself.

    Args:
        platform: "cpu", "gpu", "cuda", "tpu", ..., or a `jax.Device`.
        index: which device of that platform.

    Raises:
        RuntimeError: JAX has no such platform, or not that many devices.
        ValueError: JAX does not list the device that is given.

    >>> import jax, plugrad_jax
    >>> plugrad_jax.device("cpu").type
    'jax'
    >>> plugrad_jax.device(jax.devices()[0]) == plugrad_jax.device(jax.devices()[0].platform)
    True
    """
    if not isinstance(platform, str):
        return _named(index_of(platform))
    listed = jax.devices(platform)
    if not 0 <= index < len(listed):
        raise RuntimeError(
            f"device index {index} is out of range: JAX has {len(listed)} "
            f"device{'s' if len(listed) != 1 else ''} of platform {platform!r}"
        )
    return _named(index_of(listed[index]))


def device_of(place: Any) -> plugrad.device:
    """plugrad's device of what has JAX's devices, an array or a sharding: the first of those that
    this process has.

    Raises:
        ValueError: it is on devices of other processes only.
    """
    sharding = getattr(place, "sharding", place)
    found = sharding.addressable_devices
    if not found:
        raise ValueError(f"none of the devices of {sharding} belongs to this process")
    return _named(min(index_of(each) for each in found))


def _named(index: int) -> plugrad.device:
    made: Callable[..., plugrad.device] = plugrad.device
    return made("jax") if len(all_devices()) == 1 else made("jax", index)
