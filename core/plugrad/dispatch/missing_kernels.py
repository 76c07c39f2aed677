"""Errors for calls that no kernel can compute."""

from __future__ import annotations

from plugrad.dispatch import keys


def missing_kernel(
    name: str, primitive: str, backend: str, key: str, is_view: bool, registered: str = ""
) -> str:
    """The message about an operator that a backend cannot compute because it lacks a primitive.

    Args:
        is_view: whether the primitive makes views, which share memory, so that the host cannot
            compute it instead.
        registered: a sentence about the existing kernels.
    """
    if backend == "meta":
        return (
            f"Could not run '{name}' with arguments from the 'Meta' backend: no fake is registered "
            f"for '{primitive}'. plugrad.library.register_fake says what its results look like. "
            f"{registered}".rstrip()
        )
    if name == primitive:
        what = "the backend has no kernel for it and it has no decomposition. " + registered
    else:
        what = f"it is made of '{primitive}', for which the backend has no kernel."
    remedy = f"Give backend '{backend}' a kernel named '{primitive.removeprefix('plugrad::')}'"
    if backend != "cpu" and not is_view:
        remedy += f', or have the host compute it: fallback = "cpu" under [backends.{backend}] in'
        remedy += " plugrad.toml"
    return (
        f"Could not run '{name}' with arguments from the '{key}' backend: {what.strip()} {remedy}."
    )


def declined_kernels(name: str, key: str, kernels: str) -> str:
    """The message where each kernel of a backend has declined."""
    return (
        f"Could not run '{name}' with arguments from the '{key}' backend: {kernels} declined by "
        "returning NotImplemented, and there is no other kernel for it, nor a decomposition."
    )


def inactive_backend(name: str, key: str) -> str:
    """The message about tensors of a backend that was removed."""
    return (
        f"Could not run '{name}' with arguments from the '{key}' backend: the backend is not "
        "active any more, since its plugin was unloaded; load it again, and make new tensors on it"
    )


def no_key_served(name: str, keyset: keys.KeySet, registered: str) -> str:
    """The message about dispatch keys that name no backend."""
    return (
        f"Could not run '{name}' for the dispatch keys {keyset}: there is no kernel for them and "
        f"it has no decomposition. {registered}"
    )
