"""state_dict and load_state_dict; the words of the errors are PyTorch's (oracle: torch)."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad import nn


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))


def test_round_trip_makes_models_equal() -> None:
    source, target = model(), model()
    result = target.load_state_dict(source.state_dict())
    assert str(result) == "<All keys matched successfully>"
    inputs = plugrad.ones(4, 2)
    assert target.eval()(inputs).tolist() == source.eval()(inputs).tolist()


def test_state_dict_has_torch_names_in_order(torch: Any) -> None:
    expected = torch.nn.Sequential(
        torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1)
    )
    assert list(model().state_dict()) == list(expected.state_dict())


def test_state_dict_refers_to_the_parameters_memory() -> None:
    layer = nn.Linear(1, 1)
    state = layer.state_dict()
    with plugrad.no_grad():
        layer.weight.fill_(7.0)
    assert state["weight"].tolist() == [[7.0]]
    assert not state["weight"].requires_grad


def test_keep_vars_gives_the_parameters_themselves() -> None:
    layer = nn.Linear(1, 1)
    assert layer.state_dict(keep_vars=True)["weight"] is layer.weight


def test_non_persistent_buffers_are_left_out() -> None:
    module = nn.Module()
    module.register_buffer("kept", plugrad.ones(1))
    module.register_buffer("dropped", plugrad.ones(1), persistent=False)
    assert list(module.state_dict()) == ["kept"]


def test_load_copies_into_the_existing_parameter() -> None:
    layer = nn.Linear(1, 1)
    weight = layer.weight
    layer.load_state_dict({"weight": plugrad.full((1, 1), 4.0), "bias": plugrad.zeros(1)})
    assert layer.weight is weight
    assert weight.tolist() == [[4.0]]


def test_assign_takes_the_given_tensors() -> None:
    layer = nn.Linear(1, 1)
    given = plugrad.full((1, 1), 4.0, dtype=plugrad.float64)
    layer.load_state_dict({"weight": given, "bias": plugrad.zeros(1)}, assign=True)
    assert layer.weight.dtype == plugrad.float64
    assert isinstance(layer.weight, nn.Parameter)
    assert layer.weight.requires_grad


def test_loading_casts_to_the_parameters_dtype() -> None:
    layer = nn.Linear(1, 1)
    layer.load_state_dict(nn.Linear(1, 1).double().state_dict())
    assert layer.weight.dtype == plugrad.float32


def both_errors(torch: Any, change: Any, **kwargs: Any) -> tuple[str, str]:
    """The messages of plugrad and torch when a changed state dict is loaded into Linear(2, 3)."""
    messages = []
    for library in (plugrad, torch):
        layer = library.nn.Sequential(library.nn.Linear(2, 3))
        state = dict(layer.state_dict())
        change(library, state)
        with pytest.raises(RuntimeError) as caught:
            layer.load_state_dict(state, **kwargs)
        messages.append(str(caught.value).replace("plugrad.", "torch."))
    return messages[0], messages[1]


def drop_bias(_: Any, state: Any) -> None:
    del state["0.bias"]


def add_unknown(library: Any, state: Any) -> None:
    state["0.q"] = library.ones(1)
    state["9.w"] = library.ones(1)


def wrong_shape(library: Any, state: Any) -> None:
    state["0.weight"] = library.ones(2, 2)


def all_at_once(library: Any, state: Any) -> None:
    drop_bias(library, state)
    add_unknown(library, state)
    wrong_shape(library, state)


def not_a_tensor(_: Any, state: Any) -> None:
    state["0.weight"] = 3


@pytest.mark.parametrize("change", [drop_bias, add_unknown, wrong_shape, all_at_once, not_a_tensor])
def test_mismatch_is_reported_in_torchs_words(torch: Any, change: Any) -> None:
    actual, expected = both_errors(torch, change)
    assert actual == expected


def test_shapes_must_match_even_when_not_strict(torch: Any) -> None:
    actual, expected = both_errors(torch, wrong_shape, strict=False)
    assert actual == expected


def test_not_strict_returns_what_did_not_match() -> None:
    layer = nn.Linear(1, 1)
    result = layer.load_state_dict({"weight": plugrad.ones(1, 1), "x": plugrad.ones(1)}, False)
    assert (result.missing_keys, result.unexpected_keys) == (["bias"], ["x"])
    strict = nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "bias"\. '):
        strict.load_state_dict({"weight": plugrad.ones(1, 1)})


def test_state_dict_must_be_a_mapping() -> None:
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        nn.Linear(1, 1).load_state_dict(3)  # type: ignore[arg-type]  # the error under test


def test_batch_norm_accepts_states_from_before_the_batch_count() -> None:
    layer = nn.BatchNorm1d(2)
    state = {name: value for name, value in layer.state_dict().items() if "num" not in name}
    assert str(layer.load_state_dict(state)) == "<All keys matched successfully>"


def test_extra_state_goes_through() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = 0

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    source, target = Counting(), Counting()
    source.count = 5
    assert list(source.state_dict()) == ["_extra_state"]
    target.load_state_dict(source.state_dict())
    assert target.count == 5


def test_state_dict_hooks_run() -> None:
    layer = nn.Linear(1, 1)
    seen: list[str] = []

    def rename(module: Any, state: Any, prefix: str, metadata: Any) -> None:
        state[prefix + "renamed"] = state.pop(prefix + "weight")

    layer.register_state_dict_pre_hook(lambda module, prefix, keep: seen.append("pre"))
    handle = layer.register_state_dict_post_hook(rename)
    assert list(layer.state_dict()) == ["bias", "renamed"]
    handle.remove()
    assert list(layer.state_dict()) == ["weight", "bias"]
    assert seen == ["pre", "pre"]


def test_load_state_dict_hooks_run() -> None:
    layer = nn.Linear(1, 1)

    def rename(module: Any, state: Any, prefix: str, *rest: Any) -> None:
        state[prefix + "weight"] = state.pop(prefix + "old_weight")

    def forgive(module: Any, keys: Any) -> None:
        keys.missing_keys.clear()

    layer.register_load_state_dict_pre_hook(rename)
    layer.register_load_state_dict_post_hook(forgive)
    layer.load_state_dict({"old_weight": plugrad.full((1, 1), 2.0)})
    assert layer.weight.tolist() == [[2.0]]


def test_hooks_of_older_programs_change_state_dicts() -> None:
    """They get no module when loading, and may return another state dict."""
    layer = nn.Linear(2, 1)

    def renamed(module: Any, state: Any, prefix: str, metadata: Any) -> Any:
        return {name.replace("weight", "w"): value for name, value in state.items()}

    def back(state: Any, prefix: str, *rest: Any) -> None:
        state[f"{prefix}weight"] = state.pop(f"{prefix}w")

    handle = layer._register_state_dict_hook(renamed)
    layer._register_load_state_dict_pre_hook(back)
    state = layer.state_dict()
    assert sorted(state) == ["bias", "w"]
    assert layer.load_state_dict(state) == ([], [])
    handle.remove()
    assert sorted(layer.state_dict()) == ["bias", "weight"]
