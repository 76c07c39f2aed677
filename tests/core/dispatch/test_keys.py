"""Dispatch keys, key sets, and the bits that backends get."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import pytest

from plugrad.dispatch import keys
from plugrad.dispatch.keys import KeySet, dispatch_key, register_backend_key

META = dispatch_key("Meta")
AUTOGRAD_META = dispatch_key("AutogradMeta")
BACKEND_SELECT = dispatch_key("BackendSelect")
PYTHON = dispatch_key("PythonMode")
INPLACE_OR_VIEW = dispatch_key("ADInplaceOrView")


def test_priorities_from_high_to_low() -> None:
    everything = KeySet.of(
        META, BACKEND_SELECT, INPLACE_OR_VIEW, AUTOGRAD_META, PYTHON,
        *[dispatch_key(name) for name in ("Functionalize", "ForwardAD", "AutocastMeta")],
        *[dispatch_key(name) for name in ("Transforms", "Tracer")],
    )  # fmt: skip
    names = [key.name for key in keys.keys_of(everything.mask)]
    assert names == [
        "PythonMode", "Tracer", "Transforms", "AutocastMeta", "ForwardAD", "AutogradMeta",
        "ADInplaceOrView", "Functionalize", "BackendSelect", "Meta",
    ]  # fmt: skip


def test_union_intersection_and_membership() -> None:
    a, b = KeySet.of(META), KeySet.of(BACKEND_SELECT)
    both = a | b
    assert both.has(META)
    assert both.has(BACKEND_SELECT)
    assert both & b == b
    assert not a.has(BACKEND_SELECT)
    assert bool(a)
    assert not KeySet()
    assert KeySet().highest() is None


def test_equal_sets_hash_alike() -> None:
    assert KeySet.of(META, PYTHON) == KeySet.of(PYTHON, META)
    assert hash(KeySet.of(META)) == hash(KeySet.of(META))
    assert KeySet.of(META) != KeySet.of(PYTHON)
    assert KeySet.of(META) != META.mask


def test_difference_takes_functionalities_and_leaves_backends() -> None:
    tensor = KeySet(keys.tensor_keyset(keys.META))
    below = tensor - KeySet.of(AUTOGRAD_META)
    assert [key.name for key in keys.keys_of(below.mask)] == ["ADInplaceOrView", "Meta"]
    assert (below - KeySet.of(INPLACE_OR_VIEW)).highest() is META


def test_a_tensor_has_autograd_inplace_or_view_and_dense_keys() -> None:
    tensor = KeySet(keys.tensor_keyset(keys.META))
    assert repr(tensor) == "DispatchKeySet(AutogradMeta, ADInplaceOrView, Meta)"
    assert tensor.highest() is AUTOGRAD_META


def test_masks_for_redispatch() -> None:
    tensor = keys.tensor_keyset(keys.META)
    assert KeySet(tensor & keys.AFTER_AUTOGRAD).highest() is INPLACE_OR_VIEW
    assert KeySet(tensor & keys.AFTER_AD_INPLACE_OR_VIEW).highest() is META


def test_alias_keys_are_in_no_set() -> None:
    alias = dispatch_key("CompositeImplicitAutograd")
    assert alias.is_alias
    assert alias.mask == 0
    assert not KeySet(-1 & keys.BACKEND_MASK).has(alias)


def test_unknown_keys_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown dispatch key 'Nope'.*BackendSelect.*Meta"):
        dispatch_key("Nope")


def test_a_backend_gets_a_dense_and_an_autograd_key() -> None:
    number = register_backend_key("keystest")
    assert register_backend_key("keystest") == number
    assert keys.backend_number("keystest") == number
    assert dispatch_key("Keystest").backend == number
    assert dispatch_key("AutogradKeystest").backend == number
    both = KeySet(keys.tensor_keyset(number) | keys.tensor_keyset(keys.META))
    assert [key.name for key in keys.keys_of(both.mask)] == [
        "AutogradMeta", "AutogradKeystest", "ADInplaceOrView", "Meta", "Keystest",
    ]  # fmt: skip


def test_unknown_backends_have_no_number() -> None:
    assert keys.backend_number("never registered") == -1


@pytest.mark.parametrize("name", ["BackendSelect", "Meta", "AutogradMeta", "Autograd"])
def test_a_key_name_belongs_to_one_backend(name: str) -> None:
    with pytest.raises(ValueError, match="taken"):
        register_backend_key("another", name)
    assert keys.backend_number("another") == -1


# In a process of its own: it takes all bits.
MANY = """
from plugrad.dispatch import keys
numbers = [keys.register_backend_key(f"backend{i}") for i in range(32)]
assert len(set(numbers)) == 32
together = 0
for number in numbers:
    together |= keys.tensor_keyset(number)
assert together < 2**62, "a key set fits a machine word"
names = [key.name for key in keys.keys_of(together)]
assert names[:32] == [f"AutogradBackend{i}" for i in reversed(range(32))]
assert names[-32:] == [f"Backend{i}" for i in reversed(range(32))]
i = 32
try:
    while True:
        keys.register_backend_key(f"backend{i}")
        i += 1
except RuntimeError as error:
    print(error)
"""


def test_at_least_32_backends_fit() -> None:
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "no dispatch bit is left for backend" in done.stdout


def test_threads_that_register_one_backend_agree() -> None:
    numbers: list[int] = []
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        numbers.append(register_backend_key("threaded"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(numbers)) == 1


def test_bits_of_backends_that_are_gone_are_handed_on() -> None:
    script = """
    from plugrad.dispatch import keys
    import plugrad, numpy as np
    from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
    from plugrad.plugins import Backend

    def backend(name, factor):
        class One(Backend):
            def __init__(self):
                super().__init__(name, array_type=np.ndarray)
            def kernels(self):
                return {"exp": lambda a: factor * a}
        return One()

    for number in range(100):
        name = f"b{number}"
        activate_backend(backend(name, number))
        assert plugrad.ones(1, device=name).exp().item() == number
        deactivate_backend(name)
    activate_backend(backend("b99", 7))
    assert plugrad.ones(1, device="b99").exp().item() == 7
    assert keys.backend_number("b0") == -1
    assert len(keys._dense) == keys.MAX_BACKENDS
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
