"""Dispatch keys (functionality x backend), and sets of them as bit masks.

A key set is one integer. Its low bits are the functionalities that apply, its high bits the
backends involved:

    bit  0     1             2             3         4        5               6        ... 12 13 ...
         Dense BackendSelect Functionalize Conjugate Negative ADInplaceOrView Autograd ... backends

The kernel that runs is the one of the highest functionality; `Dense`, `Autograd` and `Autocast`
come once per backend, so that with them the highest backend bit decides: `AutogradCUDA`, then
`CUDA`.
Backends get their bit when they register. The CPU has the lowest one, since its numbers can be
combined with any device; Meta, the backend without data, has the highest one, since its combination
with any device has no data.
"""

from __future__ import annotations

import threading
from typing import Any, Final, final

from mypy_extensions import i64

DENSE: Final = 0
BACKEND_SELECT: Final = 1
FUNCTIONALIZE: Final = 2
CONJUGATE: Final = 3
NEGATIVE: Final = 4
AD_INPLACE_OR_VIEW: Final = 5
AUTOGRAD: Final = 6
FORWARD_AD: Final = 7
AUTOCAST: Final = 8
TRANSFORMS: Final = 9
TRACER: Final = 10
PYTHON: Final = 11
FUNCTIONALITY_COUNT: Final = 12

BACKEND_SHIFT: Final = 12
MAX_BACKENDS: Final = 48
LAST_BACKEND: Final = 47

DENSE_BIT: Final = 1 << 0
BACKEND_SELECT_BIT: Final = 1 << 1
FUNCTIONALIZE_BIT: Final = 1 << 2
CONJUGATE_BIT: Final = 1 << 3
NEGATIVE_BIT: Final = 1 << 4
AD_INPLACE_OR_VIEW_BIT: Final = 1 << 5
AUTOGRAD_BIT: Final = 1 << 6
FORWARD_AD_BIT: Final = 1 << 7
AUTOCAST_BIT: Final = 1 << 8
TRANSFORMS_BIT: Final = 1 << 9

FUNCTIONALITY_MASK: Final = (1 << 12) - 1
BACKEND_MASK: Final = ((1 << 48) - 1) << 12
# What remains of a key set once a functionality has had its turn.
AFTER_TRANSFORMS: Final = BACKEND_MASK | ((1 << 9) - 1)
AFTER_AUTOCAST: Final = BACKEND_MASK | ((1 << 8) - 1)
AFTER_FORWARD_AD: Final = BACKEND_MASK | ((1 << 7) - 1)
AFTER_AUTOGRAD: Final = BACKEND_MASK | ((1 << 6) - 1)
AFTER_AD_INPLACE_OR_VIEW: Final = BACKEND_MASK | ((1 << 5) - 1)
AFTER_MATH_BITS: Final = BACKEND_MASK | ((1 << 3) - 1)
AFTER_FUNCTIONALIZE: Final = BACKEND_MASK | ((1 << 2) - 1)
AUTOGRAD_KEYS: Final = AUTOGRAD_BIT | AD_INPLACE_OR_VIEW_BIT
# What a tensor's array is still to undergo: see `tensor/math_bits.py`.
MATH_BITS: Final = CONJUGATE_BIT | NEGATIVE_BIT

_FUNCTIONALITY_NAMES: Final = [
    "Dense",
    "BackendSelect",
    "Functionalize",
    "Conjugate",
    "Negative",
    "ADInplaceOrView",
    "Autograd",
    "ForwardAD",
    "Autocast",
    "Transforms",
    "Tracer",
    "PythonMode",
]


@final
class DispatchKey:
    """One slot of an operator's kernel table, such as `AutogradCPU`.

    Attributes:
        name: the key's name.
        functionality: its functionality's bit number; -1 for an alias key.
        backend: its backend's number for per-backend functionalities, else -1.
    """

    def __init__(self, name: str, functionality: int, backend: int) -> None:
        self.name = name
        self.functionality = functionality
        self.backend = backend

    @property
    def is_alias(self) -> bool:
        """Whether it stands for several keys, as `CompositeImplicitAutograd` does."""
        return self.functionality < 0

    @property
    def mask(self) -> int:
        """The key set that holds just this key; 0 for an alias."""
        if self.functionality < 0:
            return 0
        bits = 1 << self.functionality
        if self.backend >= 0:
            bits |= 1 << (BACKEND_SHIFT + self.backend)
        return bits

    def __repr__(self) -> str:
        return f"DispatchKey.{self.name}"


_lock: Final[Any] = threading.Lock()
_by_name: Final[dict[str, DispatchKey]] = {}
# By the number of the backend.
_dense: Final[dict[int, DispatchKey]] = {}
_autograd: Final[dict[int, DispatchKey]] = {}
_autocast: Final[dict[int, DispatchKey]] = {}
# The functionalities that every backend has a key of, and what their names begin with.
_PER_BACKEND: Final[list[tuple[int, str, dict[int, DispatchKey]]]] = [
    (DENSE, "", _dense),
    (AUTOGRAD, "Autograd", _autograd),
    (AUTOCAST, "Autocast", _autocast),
]
_backend_names: Final[dict[str, int]] = {}
# Removed backends, the earliest first: their numbers are free when no others are left.
_retired: Final[dict[str, None]] = {}
_shared: Final[list[DispatchKey]] = []


def _declare(name: str, functionality: int, backend: int = -1) -> DispatchKey:
    key = DispatchKey(name, functionality, backend)
    _by_name[name] = key
    return key


for _functionality in range(FUNCTIONALITY_COUNT):
    _shared.append(DispatchKey(_FUNCTIONALITY_NAMES[_functionality], _functionality, -1))
    if _functionality not in (DENSE, AUTOGRAD, AUTOCAST):
        _by_name[_FUNCTIONALITY_NAMES[_functionality]] = _shared[_functionality]

# Alias keys stand for several keys: they are used if the exact key has no kernel.
COMPOSITE_IMPLICIT_AUTOGRAD: Final = _declare("CompositeImplicitAutograd", -1)
COMPOSITE_EXPLICIT_AUTOGRAD: Final = _declare("CompositeExplicitAutograd", -1)
AUTOGRAD_ALIAS: Final = _declare("Autograd", -1)
BACKEND_SELECT_KEY: Final = _shared[BACKEND_SELECT]
AD_INPLACE_OR_VIEW_KEY: Final = _shared[AD_INPLACE_OR_VIEW]


def register_backend_key(backend: str, key_name: str | None = None) -> int:
    """Hand out a backend's bit and declare its keys `Foo`, `AutogradFoo` and `AutocastFoo`; returns
    the number.

    Registering the same backend again returns the same number, unless one of many others has got it
    in the meantime.

    Raises:
        ValueError: the key's name belongs to another backend or functionality.
        RuntimeError: all 48 bits are taken by backends that are active.
    """
    name = backend.capitalize() if key_name is None else key_name
    with _lock:
        known = _backend_names.get(backend)
        if known is not None:
            _retired.pop(backend, None)
            if key_name is not None and _dense[known].name != key_name:
                _rename(backend, known, key_name)
            return known
        if name in _by_name:
            raise ValueError(
                f"backend {backend!r} requests the dispatch key {name!r}, which is taken; "
                "give it another `key_name`"
            )
        number = LAST_BACKEND if backend == "meta" else len(_dense) - 1
        if number >= LAST_BACKEND and backend != "meta":
            number = _hand_on(backend)
        for functionality, prefix, table in _PER_BACKEND:
            table[number] = _declare(prefix + name, functionality, number)
        _backend_names[backend] = number
        return number


def retire_backend_key(backend: str) -> None:
    """Let a backend's bit go to another one, should all be taken; till then it keeps it."""
    with _lock:
        if backend in _backend_names:
            _retired[backend] = None


def _hand_on(backend: str) -> int:
    """The number of the backend that was removed first. Its keys are removed, so kernels
    that were registered for them are no longer used."""
    former = next(iter(_retired), "")
    if not former:
        raise RuntimeError(
            f"no dispatch bit is left for backend {backend!r}: {MAX_BACKENDS} backends are active"
        )
    del _retired[former]
    number = _backend_names.pop(former)
    for _, _, table in _PER_BACKEND:
        del _by_name[table[number].name]
    return number


def _rename(backend: str, number: int, name: str) -> None:
    """Rename a backend's keys to the names that it declares, once it is registered.

    Kernels may have been registered for it before, under the name that it would have by default.
    """
    for _, prefix, table in _PER_BACKEND:
        key = table[number]
        if prefix + name in _by_name:
            raise ValueError(
                f"backend {backend!r} requests the dispatch key {name!r}, which is taken; "
                "give it another `key_name`"
            )
        del _by_name[key.name]
        key.name = prefix + name
        _by_name[key.name] = key


def backend_number(backend: str) -> int:
    """The number of a backend, -1 if it has none."""
    return _backend_names.get(backend, -1)


def dense_key(number: int) -> DispatchKey:
    """The key of a backend's kernels."""
    return _dense[number]


def autocast_key(number: int) -> DispatchKey:
    """The key of autocast for a backend's tensors."""
    return _autocast[number]


def dispatch_key(name: str) -> DispatchKey:
    """The key called `name`, such as ``"AutogradCPU"``; ValueError lists the names there are."""
    found = _by_name.get(name)
    if found is None:
        raise ValueError(f"unknown dispatch key {name!r}; expected one of {', '.join(_by_name)}")
    return found


def all_keys() -> list[DispatchKey]:
    """Every declared key, aliases included."""
    return list(_by_name.values())


def tensor_keyset(backend: int) -> int:
    """The key set of an ordinary tensor of a backend: dense, ADInplaceOrView and autograd."""
    return DENSE_BIT | AUTOGRAD_BIT | AD_INPLACE_OR_VIEW_BIT | (1 << (BACKEND_SHIFT + backend))


def keys_of(keyset: i64) -> list[DispatchKey]:
    """The keys in a set, highest priority first."""
    keys: list[DispatchKey] = []
    bits: int = keyset
    for functionality in range(FUNCTIONALITY_COUNT - 1, -1, -1):
        if not bits >> functionality & 1:
            continue
        if functionality == DENSE:
            table = _dense
        elif functionality == AUTOGRAD:
            table = _autograd
        elif functionality == AUTOCAST:
            table = _autocast
        else:
            keys.append(_shared[functionality])
            continue
        numbers = sorted(table, reverse=True)
        keys.extend([table[n] for n in numbers if bits >> (BACKEND_SHIFT + n) & 1])
    return keys


# Above all devices', so that no device's kernel gets arrays without data.
META: Final = register_backend_key("meta", "Meta")
# Below all devices', whichever is activated first: an operator on tensors of both is a device's.
CPU: Final = register_backend_key("cpu", "CPU")
# No backend, but what tensors of a level have in place of one: below autograd, the operator is
# called one level further out.
OUTER_LEVEL: Final = register_backend_key("outer_level", "OuterLevel")


@final
class KeySet:
    """A readable view of a key-set mask, for people and tests; the dispatcher uses the integer.

    >>> from plugrad.dispatch import KeySet, dispatch_key
    >>> ks = KeySet.of(dispatch_key("Meta"), dispatch_key("AutogradMeta"))
    >>> ks, ks.highest()
    (DispatchKeySet(AutogradMeta, Meta), DispatchKey.AutogradMeta)
    """

    def __init__(self, mask: int = 0) -> None:
        self.mask = mask

    @staticmethod
    def of(*keys: DispatchKey) -> KeySet:
        """The set of these keys."""
        mask = 0
        for key in keys:
            mask |= key.mask
        return KeySet(mask)

    def has(self, key: DispatchKey) -> bool:
        """Whether a key is in it; no alias is."""
        return key.mask != 0 and self.mask & key.mask == key.mask

    def highest(self) -> DispatchKey | None:
        """The key that a call tries first; None if the set is empty."""
        keys = keys_of(self.mask)
        return keys[0] if keys else None

    def __or__(self, other: object) -> KeySet:
        assert isinstance(other, KeySet)
        return KeySet(self.mask | other.mask)

    def __and__(self, other: object) -> KeySet:
        assert isinstance(other, KeySet)
        return KeySet(self.mask & other.mask)

    def __sub__(self, other: object) -> KeySet:
        """Without the other's functionalities; backend bits stay, as in PyTorch."""
        assert isinstance(other, KeySet)
        return KeySet(self.mask & ~(other.mask & FUNCTIONALITY_MASK))

    def __bool__(self) -> bool:
        return self.mask != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeySet) and self.mask == other.mask

    def __hash__(self) -> int:
        return hash(self.mask)

    def __repr__(self) -> str:
        names = ", ".join(key.name for key in keys_of(self.mask))
        return f"DispatchKeySet({names})"


def dispatch_keys(tensor: Any) -> KeySet:
    """The keys of a tensor; the kernel of the highest key runs first.

    >>> import plugrad
    >>> from plugrad.dispatch import dispatch_keys
    >>> dispatch_keys(plugrad.ones(2))
    DispatchKeySet(AutogradCPU, ADInplaceOrView, CPU)

    Raises:
        TypeError: `tensor` is not a tensor.
    """
    mask: object = getattr(tensor, "_keyset", None)
    if not isinstance(mask, int):
        raise TypeError(
            "dispatch_keys(): argument 'tensor' (position 1) must be Tensor, not "
            f"{type(tensor).__name__}"
        )
    return KeySet(mask)
