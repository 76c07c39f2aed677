"""Autocast's state on a thread: the backends it is on for, their dtypes, and its cache."""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import mypyc_attr

from plugrad.dispatch.autocast_state import AutocastState
from plugrad.dispatch.keys import AUTOCAST_BIT
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.scope import Scope
from plugrad.dtype import DType

# What a thread begins with; its cache stays empty.
_NEVER_ASKED_FOR: Final = AutocastState({}, {}, True, 0, {})


def autocast_state() -> AutocastState:
    """The calling thread's, which is not to be changed."""
    found = current_state().autocast
    return _NEVER_ASKED_FOR if found is None else found


def autocast_in_force(state: LocalState) -> dict[str, DType]:
    """The device types for which it is on, with their dtypes; not to be changed."""
    found = state.autocast
    return _NEVER_ASKED_FOR.enabled if found is None else found.enabled


def _put(
    state: LocalState, enabled: dict[str, DType], dtypes: dict[str, DType], former: AutocastState
) -> None:
    cache = {} if former is _NEVER_ASKED_FOR else former.cache
    made = AutocastState(enabled, dtypes, former.cache_enabled, former.nesting, cache)
    use_autocast(state, made)


def use_autocast(state: LocalState, autocast: AutocastState | None) -> None:
    """Make it a thread's."""
    state.autocast = autocast
    if autocast is not None and len(autocast.enabled) != 0:
        state.included = state.included | AUTOCAST_BIT
    else:
        state.included = state.included & ~AUTOCAST_BIT


def enable_autocast(device_type: str, dtype: DType) -> None:
    """Have operators on a backend's tensors autocast on this thread."""
    former = autocast_state()
    _put(current_state(), {**former.enabled, device_type: dtype}, former.dtypes, former)


def disable_autocast(device_type: str) -> None:
    """Have them no longer autocast."""
    former = autocast_state()
    enabled = dict(former.enabled)
    enabled.pop(device_type, None)
    _put(current_state(), enabled, former.dtypes, former)


def choose_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Which dtype operators on a backend's tensors run in, on this thread."""
    former = autocast_state()
    enabled = former.enabled
    if device_type in enabled:
        enabled = {**enabled, device_type: dtype}
    _put(current_state(), enabled, {**former.dtypes, device_type: dtype}, former)


def keep_autocast_casts(cache_enabled: bool) -> None:
    """Say whether this thread keeps casts of leaves."""
    former = autocast_state()
    cache = {} if former is _NEVER_ASKED_FOR else former.cache
    current_state().autocast = AutocastState(
        former.enabled, former.dtypes, cache_enabled, former.nesting, cache
    )


def change_autocast_nesting(difference: int) -> int:
    """Note that a region is entered or left; returns how many there are now."""
    former = autocast_state()
    cache = {} if former is _NEVER_ASKED_FOR else former.cache
    nesting = former.nesting + difference
    current_state().autocast = AutocastState(
        former.enabled, former.dtypes, former.cache_enabled, nesting, cache
    )
    return nesting


def clear_autocast_casts() -> None:
    """Clear the cache of casts."""
    autocast_state().cache.clear()


@final
class AutocastAsBefore(Scope):
    """Context manager: a region with the autocast state of an earlier time.

    Args:
        then: the state of that time; its cache is not used.
    """

    def __init__(self, then: AutocastState | None) -> None:
        self.then = _NEVER_ASKED_FOR if then is None else then

    def read(self, state: LocalState) -> Any:
        return state.autocast

    def change(self, state: LocalState) -> None:
        former = state.autocast
        then = self.then
        if former is None:
            if then is not _NEVER_ASKED_FOR:
                use_autocast(
                    state, AutocastState(then.enabled, then.dtypes, then.cache_enabled, 1, {})
                )
            return
        nesting = former.nesting + 1
        made = AutocastState(then.enabled, then.dtypes, then.cache_enabled, nesting, former.cache)
        use_autocast(state, made)

    def restore(self, state: LocalState, before: Any) -> None:
        former: AutocastState | None = before
        if former is not None and former.nesting == 0:
            former.cache.clear()
        use_autocast(state, former)


@final
class WithoutAutocast(Scope):
    """Context manager: the thread's autocast is as if it was never requested."""

    def read(self, state: LocalState) -> Any:
        return state.autocast

    def change(self, state: LocalState) -> None:
        use_autocast(state, None)

    def restore(self, state: LocalState, before: Any) -> None:
        use_autocast(state, before)


@mypyc_attr(allow_interpreted_subclasses=True)
class AutocastRegion(Scope):
    """A region in which a backend's operators autocast, or do not.

    Attributes:
        device: the backend's name.
        fast_dtype: the dtype that its operators run in.
        _enabled: whether they do.
        _cache_enabled: whether casts of leaves are kept.
    """

    device: str = "cpu"
    fast_dtype: DType | None = None
    _enabled: bool = True
    _cache_enabled: bool = True

    def read(self, state: LocalState) -> Any:
        return state.autocast

    def change(self, state: LocalState) -> None:
        former = state.autocast
        if former is None:
            former = AutocastState({}, {}, True, 0, {})
        dtype = self.fast_dtype
        assert dtype is not None
        enabled = dict(former.enabled)
        if self._enabled:
            enabled[self.device] = dtype
        else:
            enabled.pop(self.device, None)
        dtypes = {**former.dtypes, self.device: dtype}
        nesting = former.nesting + 1
        use_autocast(
            state, AutocastState(enabled, dtypes, self._cache_enabled, nesting, former.cache)
        )

    def restore(self, state: LocalState, before: Any) -> None:
        former: AutocastState | None = before
        now = state.autocast
        # Only after the outermost region the casts are not used any more.
        if now is not None and now.nesting <= 1:
            now.cache.clear()
        use_autocast(state, former)

    def value(self) -> Any:
        return self


def pause_autocast() -> AutocastState | None:
    """Switch autocast off on this thread, until `resume_autocast` gets the returned state."""
    state = current_state()
    former = state.autocast
    if former is not None:
        use_autocast(state, former.off())
    return former


def resume_autocast(former: AutocastState | None) -> None:
    """Have the thread autocast as it did before `pause_autocast`."""
    use_autocast(current_state(), former)
