"""`GradScaler`: scales losses so that small gradients do not become zero in float16."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

from plugrad._generated import functions as F
from plugrad.amp.autocast_mode import _has_devices
from plugrad.autograd.grad_mode import no_grad
from plugrad.autograd.variable.properties import grad_of
from plugrad.device import Device
from plugrad.dispatch.backends.active import find_backend
from plugrad.dtype import float16, float32, float64, int32
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.annotations import explains

__all__ = ["GradScaler", "OptState"]

# Tensors have the methods of plugrad.Tensor.
Tensor = Any


class OptState(Enum):
    """The state of an optimizer's step since the last `update`.

    >>> import plugrad
    >>> from plugrad.amp.grad_scaler import OptState
    >>> [state.name for state in OptState]
    ['READY', 'UNSCALED', 'STEPPED']
    """

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Progress:
    """One optimizer's: its stage, and by device whether a gradient was not finite: 0. or 1."""

    def __init__(self) -> None:
        self.stage = OptState.READY
        self.found_inf: dict[Device, Tensor] = {}


class _Copies:
    """Copies of a tensor, at most one for each device."""

    def __init__(self, tensor: Tensor) -> None:
        self.by_device: dict[Device, Tensor] = {tensor.device: tensor}
        self.tensor = tensor

    def on(self, device: Device) -> Tensor:
        found = self.by_device.get(device)
        if found is None:
            found = self.by_device[device] = self.tensor.to(device=device, non_blocking=True)
        return found


def _gradients(optimizer: Any) -> Iterator[Tensor]:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if not isinstance(parameter, TensorBase):
                raise AssertionError(
                    f"expected param to be plugrad.Tensor, got {type(parameter).__name__}"
                )
            grad = grad_of(parameter)
            if grad is not None:
                yield grad


class GradScaler:
    """Scales losses, unscales gradients, and skips steps with gradients that are not finite.

    A step is ``scaler.scale(loss).backward()``, ``scaler.step(optimizer)``, ``scaler.update()``.
    bfloat16 does not need this.

    Args:
        device: the model's device; ``"cuda"`` without CUDA disables the scaler, with a warning.
        init_scale: the initial factor of losses.
        growth_factor: the factor by which `update` multiplies the scale after `growth_interval`
            steps in a row that were not skipped.
        backoff_factor: the factor by which it multiplies the scale after a skipped step.
        growth_interval: see `growth_factor`.
        enabled: False: `step` is the optimizer's, and all other methods do nothing.

    Raises:
        AssertionError: `growth_factor` is not over 1, or `backoff_factor` not under 1.

    >>> import plugrad
    >>> p = plugrad.ones(2, requires_grad=True)
    >>> optimizer = plugrad.optim.SGD([p], lr=0.5)
    >>> scaler = plugrad.amp.GradScaler("cpu", init_scale=1024.0)
    >>> scaler.scale(p.sum()).backward()
    >>> p.grad
    tensor([1024., 1024.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> p.tolist(), p.grad.tolist(), scaler.get_scale()
    ([0.5, 0.5], [1.0, 1.0], 1024.0)
    """

    @explains(name="GradScaler")
    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not _has_devices("cuda"):
            warnings.warn(
                "plugrad.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        # Made on the device of the first loss.
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._progress: defaultdict[int, _Progress] = defaultdict(_Progress)

    def _state_for(self, method: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                f"Attempted {method} but _scale is None.  This may indicate your script did not "
                "use scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale, self._growth_tracker

    def _scale_for(self, device: Device) -> Tensor:
        """The scale, made on `device` if there is none yet."""
        if self._scale is None:
            self._scale = F.full((), self._init_scale, dtype=float32, device=device)
            self._growth_tracker = F.full((), self._init_growth_tracker, dtype=int32, device=device)
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """Tensors, or nested iterables of them, times the scale.

        Raises:
            ValueError: something else is among them.

        >>> import plugrad
        >>> scaler = plugrad.amp.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale(plugrad.tensor(0.5))
        tensor(4.)
        """
        if not self._enabled:
            return outputs
        copies: list[_Copies] = []

        def scaled(value: Any) -> Any:
            if isinstance(value, TensorBase):
                tensor: Tensor = value
                if not copies:
                    copies.append(_Copies(self._scale_for(tensor.device)))
                return tensor * copies[0].on(tensor.device)
            if isinstance(value, Iterable):
                items = map(scaled, value)
                return type(value)(items) if isinstance(value, list | tuple) else items
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")

        return scaled(outputs)

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, for example to clip them.

        Call it once between two updates, after all gradients are computed; otherwise `step` does
        it. It does not wait for the device.

        Raises:
            AssertionError: nothing was scaled before.
            RuntimeError: it was called already, or after `step`.
            ValueError: gradients are float16, which they are if the parameters are.

        >>> import plugrad
        >>> layer = plugrad.nn.Linear(1, 1)
        >>> optimizer = plugrad.optim.SGD(layer.parameters(), lr=0.1)
        >>> scaler = plugrad.amp.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale(layer(plugrad.ones(1, 1)).sum()).backward()
        >>> layer.bias.grad
        tensor([8.])
        >>> scaler.unscale_(optimizer)
        >>> layer.bias.grad
        tensor([1.])
        """
        if not self._enabled:
            return
        scale, _ = self._state_for("unscale_")
        progress = self._progress[id(optimizer)]
        if progress.stage is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if progress.stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        with no_grad():
            # A reciprocal in float32 may be off by a bit.
            wide = scale.to(float64) if _has_float64(scale.device) else scale
            inverses = _Copies(wide.reciprocal().to(float32))
            flags: defaultdict[Device, list[Tensor]] = defaultdict(list)
            grads = list(_gradients(optimizer))
            if any(grad.dtype is float16 for grad in grads):
                raise ValueError("Attempting to unscale FP16 gradients.")
            for grad in grads:
                flags[grad.device].append(F.all(F.isfinite(grad)))
                grad.mul_(inverses.on(grad.device))
            progress.found_inf = {
                device: F.logical_not(F.all(F.stack(finite))).to(float32)
                for device, finite in flags.items()
            }
        progress.stage = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call `optimizer.step(*args, **kwargs)` on unscaled gradients, if all are finite.

        It waits once for the devices to check this.

        Raises:
            RuntimeError: a `closure` is given, or it was called since the last `update` already.
            AssertionError: no loss was scaled before, or no parameter has a gradient.

        >>> import plugrad
        >>> weight = plugrad.nn.Parameter(plugrad.ones(1))
        >>> optimizer = plugrad.optim.SGD([weight], lr=0.5)
        >>> scaler = plugrad.amp.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale((weight * plugrad.inf).sum()).backward()
        >>> _ = scaler.step(optimizer)  # skipped: the gradient is not finite
        >>> weight.tolist()
        [1.0]
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        scale, _ = self._state_for("step")
        progress = self._progress[id(optimizer)]
        if progress.stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if progress.stage is OptState.READY:
            self.unscale_(optimizer)
        if not progress.found_inf:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        skipped = bool(_sum_on(scale.device, progress.found_inf.values()).item())
        result = None if skipped else optimizer.step(*args, **kwargs)
        progress.stage = OptState.STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Adapt the scale to the steps since the last update, or set it.

        Call it once per iteration, after the steps of all optimizers. It does not wait for the
        device.

        Args:
            new_scale: a float, or a tensor of one element on the scaler's device.

        Raises:
            AssertionError: nothing was scaled, no gradients were checked, or `new_scale` is
                something else.

        >>> import plugrad
        >>> weight = plugrad.nn.Parameter(plugrad.ones(1))
        >>> optimizer = plugrad.optim.SGD([weight], lr=0.5)
        >>> scaler = plugrad.amp.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale((weight * plugrad.inf).sum()).backward()
        >>> _ = scaler.step(optimizer)
        >>> scaler.update()
        >>> scaler.get_scale()
        4.0
        """
        if not self._enabled:
            return
        scale, tracker = self._state_for("update")
        with no_grad():
            if new_scale is None:
                found = [
                    found_inf
                    for progress in self._progress.values()
                    for found_inf in progress.found_inf.values()
                ]
                if not found:
                    raise AssertionError("No inf checks were recorded prior to update.")
                self._adapt(scale, tracker, _sum_on(scale.device, found))
            elif isinstance(new_scale, float):
                scale.fill_(new_scale)
            else:
                single = new_scale.device.type == self._device and new_scale.numel() == 1
                if not single or new_scale.requires_grad:
                    raise AssertionError(
                        "new_scale should be a float or a 1-element plugrad.cuda.FloatTensor or "
                        "plugrad.FloatTensor with requires_grad=False."
                    )
                scale.copy_(new_scale.reshape(()))
        self._progress = defaultdict(_Progress)

    def _adapt(self, scale: Tensor, tracker: Tensor, found_inf: Tensor) -> None:
        """Back off if there was an infinity or nan, else grow when it is time to, and possible."""
        skipped = found_inf > 0
        successes = F.where(skipped, F.zeros_like(tracker), tracker + 1)
        due = successes == self._growth_interval
        grown = scale * self._growth_factor
        grown = F.where(F.logical_and(due, F.isfinite(grown)), grown, scale)
        scale.copy_(F.where(skipped, scale * self._backoff_factor, grown))
        tracker.copy_(F.where(due, F.zeros_like(tracker), successes))

    def get_scale(self) -> float:
        """The scale, 1.0 if the scaler is disabled; waits for the device.

        >>> import plugrad
        >>> plugrad.amp.GradScaler("cpu", init_scale=8.0).get_scale()
        8.0
        >>> plugrad.amp.GradScaler("cpu", enabled=False).get_scale()
        1.0
        """
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """The factor by which the scale grows.

        >>> import plugrad
        >>> plugrad.amp.GradScaler("cpu").get_growth_factor()
        2.0
        """
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows.

        >>> import plugrad
        >>> scaler = plugrad.amp.GradScaler("cpu")
        >>> scaler.set_growth_factor(4.0)
        >>> scaler.get_growth_factor()
        4.0
        """
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor by which the scale backs off.

        >>> import plugrad
        >>> plugrad.amp.GradScaler("cpu").get_backoff_factor()
        0.5
        """
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale backs off.

        >>> import plugrad
        >>> scaler = plugrad.amp.GradScaler("cpu")
        >>> scaler.set_backoff_factor(0.25)
        >>> scaler.get_backoff_factor()
        0.25
        """
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps that were not skipped the scale grows.

        >>> import plugrad
        >>> plugrad.amp.GradScaler("cpu").get_growth_interval()
        2000
        """
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps that were not skipped the scale grows.

        >>> import plugrad
        >>> scaler = plugrad.amp.GradScaler("cpu")
        >>> scaler.set_growth_interval(100)
        >>> scaler.get_growth_interval()
        100
        """
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker.item())

    def is_enabled(self) -> bool:
        """Whether the scaler does anything.

        >>> import plugrad
        >>> plugrad.amp.GradScaler("cpu", enabled=False).is_enabled()
        False
        """
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The state as numbers, empty if the scaler is disabled; call it after `update`.

        >>> import plugrad
        >>> sorted(plugrad.amp.GradScaler("cpu", init_scale=8.0).state_dict())
        ['_growth_tracker', 'backoff_factor', 'growth_factor', 'growth_interval', 'scale']
        """
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`; a disabled scaler does nothing.

        Raises:
            RuntimeError: it is empty.

        >>> import plugrad
        >>> scaler = plugrad.amp.GradScaler("cpu")
        >>> scaler.load_state_dict(plugrad.amp.GradScaler("cpu", init_scale=8.0).state_dict())
        >>> scaler.get_scale()
        8.0
        """
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._progress:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = None
            state["_growth_tracker"] = None
        return state


def _sum_on(device: Device, flags: Iterable[Tensor]) -> Tensor:
    """Their sum, on one device."""
    moved = [flag.to(device=device, non_blocking=True) for flag in flags]
    return F.sum(F.stack(moved))


def _has_float64(device: Device) -> bool:
    try:
        find_backend(device.type).backend.native_dtype(float64)
    except TypeError:
        return False
    return True
