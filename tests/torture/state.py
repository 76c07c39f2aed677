"""All state of a thread and of the process that a block may change, and whether plugrad is sane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import plugrad
import plugrad.autograd.forward_ad as fwAD
from plugrad import func
from plugrad.autograd import checkpoint, saved_tensors
from plugrad.autograd.engine.anomaly import ANOMALY
from plugrad.autograd.variable.view_replay import is_view_replay_enabled
from plugrad.device import chosen_devices
from plugrad.dispatch.local_state import WATCH, current_state
from plugrad.library import fakes
from plugrad.plugins.config import current as config
from plugrad.plugins.loading import registrations

FIELDS = (
    "included",
    "kept",
    "grad_enabled",
    "trace",
    "inference_mode",
    "saved_tensor_hooks",
    "saved_tensor_hooks_error",
    "multithreading",
    "grad_layout",
    "graph_task",
    "worker",
    "depth",
    "node",
    "overrides_off",
    "function_modes",
    "array_log",
    "checkpoint_group",
    "level",
)


def _parts() -> Iterator[tuple[str, Any]]:
    state = current_state()
    for name in FIELDS:
        yield name, getattr(state, name)
    autocast = state.autocast
    if autocast is None:
        yield "autocast", ({}, {}, True, 0)
    else:
        yield (
            "autocast",
            (autocast.enabled, autocast.dtypes, autocast.cache_enabled, autocast.nesting),
        )
    yield "devices", chosen_devices() or (None, ())
    yield "default dtype", plugrad.get_default_dtype()
    yield "threads that are watched", WATCH.threads
    yield "anomaly mode", (ANOMALY.enabled, ANOMALY.check_nan)
    yield "view replay", is_view_replay_enabled()
    yield "dual levels", (len(fwAD._levels), fwAD._current_level)
    yield (
        "checkpoints",
        (
            checkpoint._Overrides.early_stop,
            checkpoint._Overrides.debug,
        ),
    )
    yield "mutation allowed", saved_tensors._mutation.allowed_by
    yield "mutation locked", saved_tensors._mutation.lock.locked()
    yield "fake's context", (fakes._contexts.current, fakes._contexts.wanted)
    yield "owner of registrations", registrations._local.owner
    yield "configuration", config._current.from_code
    yield "configuration locked", config._current.lock.locked()


def state() -> dict[str, Any]:
    """Everything, by name."""
    return dict(_parts())


def differences(before: dict[str, Any]) -> str:
    """What is not as it was, in a line; empty if nothing is."""
    now = state()
    return ", ".join(
        f"{name}: {now[name]!r} instead of {value!r}"
        for name, value in before.items()
        if now[name] is not value and now[name] != value
    )


def restore(before: dict[str, Any]) -> None:
    """Make the most common fields what they were, so that one finding is not found again."""
    local = current_state()
    for name in FIELDS:
        setattr(local, name, before[name])
    local.autocast = None
    ANOMALY.enabled, ANOMALY.check_nan = before["anomaly mode"]
    while fwAD._levels:
        fwAD.exit_dual_level()


def insanity() -> str:
    """What a fresh backward, grad, jvp or vmap does wrong; empty if all are right."""
    wrong = ""
    try:
        x = plugrad.tensor([1.0, 2.0], requires_grad=True)
        (x * x).sum().backward()
        if x.grad.tolist() != [2.0, 4.0]:
            wrong += f" backward gives {x.grad.tolist()}"
        with plugrad.no_grad():
            if (x * x).requires_grad:
                wrong += " no_grad records"
        values = plugrad.tensor([1.0, 2.0])
        found = func.grad(lambda v: (v * v).sum())(values).tolist()
        if found != [2.0, 4.0]:
            wrong += f" grad gives {found}"
        found = func.jvp(lambda v: v * v, (values,), (plugrad.ones(2),))[1].tolist()
        if found != [2.0, 4.0]:
            wrong += f" jvp gives {found}"
        found = func.vmap(lambda v: v * v)(values).tolist()
        if found != [1.0, 4.0]:
            wrong += f" vmap gives {found}"
    except Exception as error:
        wrong += f" {type(error).__name__}: {error}"
    return wrong
