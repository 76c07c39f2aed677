"""The smaller names of `torch.serialization`. Oracle: PyTorch, where it has no GPU either."""

from __future__ import annotations

import types
from typing import Any

import pytest

import plugrad
from plugrad import serialization


def test_every_public_name_is_there(torch: Any) -> None:
    assert set(torch.serialization.__all__) <= set(serialization.__all__)
    for name in ("DEFAULT_PROTOCOL", "STORAGE_KEY_SEPARATOR"):
        assert getattr(serialization, name) == getattr(torch.serialization, name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", ["1.2.3", "1.2", "1", "x.y", "0.9.1", "2.0"])
@pytest.mark.parametrize("strict", [True, False])
def test_versions_compare_as_in_torch(torch: Any, version: str, strict: bool) -> None:
    module = types.ModuleType("m")
    module.__version__ = version  # type: ignore[attr-defined]
    answers: list[Any] = []
    for library in (serialization, torch.serialization):
        try:
            answer = library.check_module_version_greater_or_equal(module, (1, 2), strict)
        except RuntimeError as error:
            answer = str(error)
        answers.append(answer)
    assert answers[0] == answers[1]


def test_types_of_storages_are_torchs(torch: Any) -> None:
    for name in ("FloatStorage", "BFloat16Storage", "ComplexDoubleStorage"):
        ours = str(serialization.StorageType(name))
        assert ours.replace("plugrad", "torch") == str(torch.serialization.StorageType(name))
    for library in (serialization, torch.serialization):
        with pytest.raises(KeyError):
            library.StorageType("NoStorage")


def test_storages_have_classes_of_tensors() -> None:
    for name in ("Float", "Double", "Long", "Bool"):
        storage = getattr(plugrad, f"{name}Storage")
        tensor = getattr(plugrad, f"{name}Tensor")
        assert serialization.storage_to_tensor_type(storage(1)) is tensor
        assert serialization.normalize_storage_type(type(f"{name}Storage", (), {})) is storage
    for wrong in (plugrad.UntypedStorage(1), [1.0]):
        with pytest.raises(TypeError, match=r"argument 'storage' \(position 1\) must be a storage"):
            serialization.storage_to_tensor_type(wrong)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="no class of storages 'list'"):
        serialization.normalize_storage_type(list)


@pytest.mark.parametrize("kind", ["cuda", "hpu"])
def test_devices_that_are_not_there_are_refused(kind: str) -> None:
    check = getattr(serialization, f"validate_{kind}_device")
    with pytest.raises(ValueError, match=f"Expected a {kind} device, but got: cpu"):
        check("cpu")
    with pytest.raises(RuntimeError, match=rf"Attempting to deserialize object on a (?i:{kind})"):
        check(f"{kind}:99")
