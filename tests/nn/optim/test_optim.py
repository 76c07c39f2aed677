"""Optimizers: trajectories in float64 against PyTorch's, groups, state and errors."""

from __future__ import annotations

import inspect
import pickle
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import nn, optim

# Every optimizer with every option that changes what it computes.
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05}),
    ("SGD", {"lr": 1e-3, "weight_decay": 0.05, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.2, "amsgrad": True}),
    ("Adadelta", {"rho": 0.5, "eps": 1e-4, "weight_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5, "weight_decay": 0.1}),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1}),
    ("NAdam", {"momentum_decay": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"betas": (0.8, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {"lr": 0.05, "weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "maximize": True}),
    ("Rprop", {"lr": 0.05, "etas": (0.3, 1.5), "step_sizes": (0.01, 0.1)}),
    ("ASGD", {"lr": 0.05, "weight_decay": 0.1}),
    ("ASGD", {"lambd": 0.1, "t0": 3, "alpha": 0.5, "maximize": True}),
    ("Adafactor", {"weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.05, "d": 2.0, "beta2_decay": -0.5, "eps": (1e-3, 1e-2)}),
    ("Muon", {"lr": 0.05}),
    ("Muon", {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}),
    ("LBFGS", {"lr": 0.5, "history_size": 3, "max_iter": 6}),
    ("LBFGS", {"line_search_fn": "strong_wolfe"}),
]
NAMES = sorted({name for name, _ in OPTIONS} | {"SparseAdam"})
ELEMENTWISE = [case for case in OPTIONS if case[0] not in ("Muon", "LBFGS")]
ELEMENTWISE_NAMES = sorted({name for name, _ in ELEMENTWISE} - {"Adafactor"})


def start(library: Any, dtype: str = "float64", name: str = "") -> list[Any]:
    rng = np.random.default_rng(1)
    shapes = [(3, 2), (2, 3)] if name == "Muon" else [(3, 2), (4,)]
    values = [rng.standard_normal((2, *shape)) for shape in shapes]
    if dtype.startswith("complex"):
        arrays = [(value[0] + 1j * value[1]).astype(dtype) for value in values]
    else:
        arrays = [value[0].astype(dtype) for value in values]
    return [library.nn.Parameter(library.tensor(array)) for array in arrays]


def minimise(optimizer: Any, parameters: list[Any], steps: int) -> None:
    """Some steps towards a valley; in the second step the last parameter has no gradient."""
    for number in range(steps):

        def closure(number: int = number) -> Any:
            optimizer.zero_grad()
            used = parameters[:-1] if number == 1 else parameters
            distances = [(p - 0.1).abs() for p in used]
            loss = sum((d * d * (1 + p.abs())).sum() for d, p in zip(distances, used, strict=True))
            loss.backward()
            return loss

        optimizer.step(closure)


def trained(
    library: Any, name: str, options: dict[str, Any], dtype: str = "float64", steps: int = 10
) -> tuple[list[Any], Any]:
    parameters = start(library, dtype, name)
    optimizer = getattr(library.optim, name)(parameters, **options)
    minimise(optimizer, parameters, steps)
    return parameters, optimizer


def plain(value: Any) -> Any:
    """Tensors of both libraries as arrays."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value)
    return np.array(value.detach().numpy()) if hasattr(value, "detach") else value


def as_tensors(library: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_tensors(library, item) for key, item in value.items()}
    return library.tensor(value) if isinstance(value, np.ndarray) else value


def assert_same(actual: Any, expected: Any, rtol: float) -> None:
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_ten_steps_and_the_state_agree_with_torch(
    torch: Any, name: str, options: dict[str, Any]
) -> None:
    (ours, optimizer), (theirs, reference) = (
        trained(library, name, options) for library in (plugrad, torch)
    )
    assert_same(plain(ours), plain(theirs), 1e-12)
    actual, expected = plain(optimizer.state_dict()), plain(reference.state_dict())
    assert actual["param_groups"] == expected["param_groups"]
    if name == "LBFGS":
        return
    for number, state in expected["state"].items():
        assert list(actual["state"][number]) == list(state)
        assert_same(actual["state"][number].values(), state.values(), 1e-6)


def thirty_steps(library: Any, name: str, options: dict[str, Any]) -> list[Any]:
    """Two groups with rates of their own, and gradients that stay small wherever steps lead."""
    parameters = start(library, "float64", name)
    groups: list[Any] = [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.01}]
    optimizer = getattr(library.optim, name)(parameters if name == "LBFGS" else groups, **options)
    for _ in range(30):

        def closure() -> Any:
            optimizer.zero_grad()
            loss = sum((1 + (p - 0.1).square()).log().sum() for p in parameters)
            loss.backward()
            return loss

        optimizer.step(closure)
    return parameters


@pytest.mark.parametrize("extra", ["", "foreach", "fused", "maximize", "foreach maximize"])
@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_thirty_steps_of_two_groups_agree_with_torch(
    torch: Any, name: str, options: dict[str, Any], extra: str
) -> None:
    if set(extra.split()) - set(inspect.signature(getattr(torch.optim, name)).parameters):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            getattr(optim, name)(start(plugrad), **dict.fromkeys(extra.split(), True))
        return
    given = {**options, **dict.fromkeys(extra.split(), True)}
    ours, theirs = (thirty_steps(library, name, given) for library in (plugrad, torch))
    # PyTorch's lists keep the rates of ASGD in float32.
    assert_same(plain(ours), plain(theirs), 1e-6 if name == "ASGD" else 1e-9)


@pytest.mark.parametrize(("name", "options"), ELEMENTWISE[::2])
def test_lists_of_small_or_complex_parameters_agree_with_torch(
    torch: Any, name: str, options: dict[str, Any]
) -> None:
    for dtype, rtol in (("float32", 1e-4), ("complex128", 1e-6)):
        if (name, dtype) == ("Adafactor", "complex128"):
            continue
        (ours, _), (theirs, _) = (
            trained(library, name, {**options, "foreach": foreach}, dtype)
            for library, foreach in ((plugrad, True), (torch, False))
        )
        assert_same(plain(ours), plain(theirs), rtol)


@pytest.mark.parametrize(("name", "options"), [c for c in OPTIONS[::2] if c[0] != "LBFGS"])
def test_state_dicts_are_torchs_in_both_directions(
    torch: Any, name: str, options: dict[str, Any]
) -> None:
    for source, target in ((plugrad, torch), (torch, plugrad)):
        former, optimizer = trained(source, name, options, steps=3)
        parameters = [target.nn.Parameter(target.tensor(value)) for value in plain(former)]
        resumed = getattr(target.optim, name)(parameters, lr=123.0)
        resumed.load_state_dict(as_tensors(target, plain(optimizer.state_dict())))
        minimise(optimizer, former, 1)
        minimise(resumed, parameters, 1)
        assert_same(plain(parameters), plain(former), 1e-6)


@pytest.mark.parametrize(("name", "options"), OPTIONS[::2])
def test_resuming_from_a_state_dict_continues_the_trajectory(
    name: str, options: dict[str, Any]
) -> None:
    straight, first = trained(plugrad, name, options, steps=3)
    resumed = [nn.Parameter(p.detach().clone()) for p in straight]
    second = getattr(optim, name)(resumed, lr=123.0)
    second.load_state_dict(first.state_dict())
    copied = pickle.loads(pickle.dumps(second))
    for optimizer, parameters in (
        (first, straight),
        (second, resumed),
        (copied, copied.param_groups[0]["params"]),
    ):
        minimise(optimizer, parameters, 1)
    for others in (resumed, copied.param_groups[0]["params"]):
        # NAdam's product of momenta takes on the parameter's dtype when it is loaded.
        assert_same(plain(others), plain(straight), 1e-7)


@pytest.mark.parametrize("name", ELEMENTWISE_NAMES)
def test_capturable_lists_and_tensors_for_rates_change_nothing(name: str) -> None:
    expected = plain(trained(plugrad, name, {"lr": 0.125}, "float32", 3)[0])
    ways: list[dict[str, Any]] = [{"foreach": True}, {"lr": plugrad.tensor([0.125])}]
    options = inspect.signature(getattr(optim, name)).parameters
    if "fused" in options:
        ways.append({"fused": True})
    if "capturable" in options:
        ways += [{"capturable": True}, {"capturable": True, "foreach": True}]
    for way in ways:
        found = plain(trained(plugrad, name, {"lr": 0.125, **way}, "float32", 3)[0])
        # Counts of float32 in powers of betas.
        assert_same(found, expected, 1e-3 if "capturable" in way else 1e-6)


@pytest.mark.parametrize("name", ELEMENTWISE_NAMES)
def test_a_differentiable_step_has_the_right_gradient(name: str) -> None:
    def two_steps(start: Any, rate: Any) -> Any:
        p = start.clone()
        options: dict[str, Any] = {"differentiable": True, "lr": 0.1 if fixed else rate}
        optimizer = getattr(optim, name)([p], **options)
        for _ in range(2):
            p.grad = (start * p.clone() + p.clone() ** 2) * 3
            optimizer.step()
        return p

    fixed = name in ("ASGD", "Rprop")  # which put the rate into their state
    values = plugrad.tensor([0.3, -0.7], dtype=plugrad.float64, requires_grad=True)
    rate = plugrad.tensor(0.1, dtype=plugrad.float64, requires_grad=not fixed)
    assert plugrad.autograd.gradcheck(two_steps, (values, rate), atol=1e-4)


def test_loaded_state_is_a_copy() -> None:
    parameters = start(plugrad)
    source = optim.SGD(parameters, lr=0.1, momentum=0.9)
    minimise(source, parameters, 1)
    target = optim.SGD(parameters, lr=0.1, momentum=0.9)
    target.load_state_dict(source.state_dict())
    source_buffer = source.state[parameters[0]]["momentum_buffer"]
    target_buffer = target.state[parameters[0]]["momentum_buffer"]
    assert source_buffer is not target_buffer
    assert source_buffer.tolist() == target_buffer.tolist()


def test_state_dict_numbers_parameters_in_order() -> None:
    a, b = start(plugrad)
    optimizer = optim.SGD([{"params": [b], "lr": 0.5}, {"params": [a]}], lr=0.1, momentum=0.9)
    a.grad = plugrad.ones_like(a)
    optimizer.step()
    state = optimizer.state_dict()
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert [group["lr"] for group in state["param_groups"]] == [0.5, 0.1]
    assert list(state["state"]) == [1]


def test_groups_use_their_own_options() -> None:
    a, b = nn.Parameter(plugrad.zeros(1)), nn.Parameter(plugrad.zeros(1))
    optimizer = optim.SGD([{"params": [a]}, {"params": [b], "lr": 10.0}], lr=1.0)
    a.grad, b.grad = plugrad.ones(1), plugrad.ones(1)
    optimizer.step()
    assert (a.item(), b.item()) == (-1.0, -10.0)


def test_added_group_is_trained() -> None:
    a, b = nn.Parameter(plugrad.zeros(1)), nn.Parameter(plugrad.zeros(1))
    optimizer = optim.SGD([a], lr=1.0)
    optimizer.add_param_group({"params": b})
    b.grad = plugrad.ones(1)
    optimizer.step()
    assert b.item() == -1.0


def test_named_parameters_are_accepted() -> None:
    layer = nn.Linear(1, 1)
    optimizer = optim.SGD(layer.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][0] is layer.weight


def test_parameters_without_gradient_are_left_alone() -> None:
    parameter = nn.Parameter(plugrad.ones(1))
    optim.Adam([parameter]).step()
    assert parameter.item() == 1.0


def test_step_does_not_record_a_graph() -> None:
    parameter = nn.Parameter(plugrad.ones(1))
    parameter.grad = plugrad.ones(1)
    optim.Adam([parameter]).step()
    assert parameter.is_leaf
    assert parameter.requires_grad


def test_closure_is_evaluated_with_gradients_and_its_loss_returned() -> None:
    parameter = nn.Parameter(plugrad.tensor([2.0]))
    optimizer = optim.SGD([parameter], lr=0.25)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (parameter * parameter).sum()
        loss.backward()
        return loss

    with plugrad.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 4.0
    assert parameter.item() == 1.0


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad(set_to_none: bool) -> None:
    parameter = nn.Parameter(plugrad.ones(1))
    parameter.grad = plugrad.ones(1)
    optim.SGD([parameter]).zero_grad(set_to_none)
    if set_to_none:
        assert parameter.grad is None
    else:
        assert parameter.grad.tolist() == [0.0]


def test_step_hooks_run_before_and_after() -> None:
    parameter = nn.Parameter(plugrad.zeros(1))
    parameter.grad = plugrad.ones(1)
    optimizer = optim.SGD([parameter], lr=1.0)
    seen: list[float] = []
    optimizer.register_step_pre_hook(lambda *_: seen.append(parameter.item()))
    optimizer.register_step_post_hook(lambda *_: seen.append(parameter.item()))
    optimizer.step()
    assert seen == [0.0, -1.0]


def test_repr_lists_the_options() -> None:
    text = repr(optim.SGD([nn.Parameter(plugrad.ones(1))], lr=0.5))
    assert text == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n"
        "    fused: None\n    lr: 0.5\n    maximize: False\n    momentum: 0\n    nesterov: False\n"
        "    weight_decay: 0\n)"
    )


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("SGD([p], lr=-1)", ValueError),
        ("SGD([p], momentum=-1)", ValueError),
        ("SGD([p], weight_decay=-1)", ValueError),
        ("SGD([p], nesterov=True)", ValueError),
        ("Adam([p], lr=-1)", ValueError),
        ("Adam([p], eps=-1)", ValueError),
        ("Adam([p], betas=(2, 0.5))", ValueError),
        ("AdamW([p], betas=(0.5, 1.0))", ValueError),
        ("Adam([p], betas=(0.5, 0))", ValueError),
        ("Adam([p], lr=torch.tensor(0.1), foreach=True)", ValueError),
        ("Adadelta([p], rho=2)", ValueError),
        ("Adagrad([p], lr_decay=-1)", ValueError),
        ("Rprop([p], etas=(0.5, 0.9))", ValueError),
        ("NAdam([p], momentum_decay=-1)", ValueError),
        ("Adafactor([p], d=0.5)", ValueError),
        ("Adafactor([p], eps=(-1, 0.1))", ValueError),
        ("Muon([p])", ValueError),
        ("Muon([torch.ones(2, 2)], adjust_lr_fn='other')", ValueError),
        ("Muon([torch.ones(2, 2)], lr=torch.ones(2))", ValueError),
        ("LBFGS([{'params': [p]}, {'params': [q]}])", ValueError),
        ("SparseAdam([p], eps=0.0)", ValueError),
        ("SparseAdam([p * 0.5j])", ValueError),
        ("[setattr(p, 'grad', p.detach()), SparseAdam([p]).step()]", RuntimeError),
        ("SGD([('a', p), q])", ValueError),
        ("SGD([('a', p)]).add_param_group({'params': [q]})", ValueError),
        ("Optimizer([p], {'lr': required})", ValueError),
        ("SGD([])", ValueError),
        ("SGD([3])", TypeError),
        ("SGD([p * 2])", ValueError),
        ("SGD([{'params': [p]}, {'params': [p]}])", ValueError),
        ("SGD([{'params': {p}}])", TypeError),
        ("SGD([p]).add_param_group(3)", TypeError),
        (
            "SGD([p]).load_state_dict(Adam([{'params': [p]}, {'params': [q]}]).state_dict())",
            ValueError,
        ),
        ("SGD([p]).load_state_dict(SGD([p, q]).state_dict())", ValueError),
    ],
)
def test_wrong_use_raises_torchs_words(torch: Any, expression: str, error: type[Exception]) -> None:
    messages = []
    for library in (plugrad, torch):
        p, q = (library.nn.Parameter(library.ones(1)) for _ in range(2))
        names = {name: getattr(library.optim, name) for name in (*NAMES, "Optimizer")}
        required = import_module(f"{library.__name__}.optim.optimizer").required
        names |= {"p": p, "q": q, "torch": library, "required": required}
        with pytest.raises(error) as caught:
            eval(expression, names)
        messages.append(str(caught.value).replace("plugrad.Size", "torch.Size"))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_torchs(torch: Any, name: str) -> None:
    def parameters(library: Any) -> dict[str, Any]:
        found = inspect.signature(getattr(library.optim, name)).parameters
        return {key: (one.kind, one.default) for key, one in found.items()}

    assert parameters(plugrad) == parameters(torch)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"fused": True, "foreach": True}, RuntimeError),
        ({"fused": True, "differentiable": True}, RuntimeError),
        ({"lr": [0.1, 0.2]}, ValueError),
    ],
)
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_wrong_switches_raise_torchs_words(
    torch: Any, name: str, options: dict[str, Any], error: type[Exception]
) -> None:
    messages = []
    for library in (plugrad, torch):
        given = {k: library.tensor(v) if isinstance(v, list) else v for k, v in options.items()}
        with pytest.raises(error) as caught:
            getattr(library.optim, name)(start(library), **given)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_the_learning_rate_may_be_a_tensor() -> None:
    weight = nn.Parameter(plugrad.ones(1))
    optimizer = optim.SGD([weight], lr=plugrad.tensor(0.5))
    weight.sum().backward()
    optimizer.step()
    assert weight.item() == 0.5


def test_an_option_is_a_real_number() -> None:
    with pytest.raises(TypeError, match=r"Tensor lr must be real, not plugrad\.complex64"):
        optim.Adam([plugrad.ones(1)], lr=plugrad.ones((), dtype=plugrad.complex64))


def test_hooks_of_steps_may_replace_arguments_and_run_for_all_optimizers() -> None:
    seen: list[str] = []
    module = import_module("plugrad.optim.optimizer")
    handles = [
        module.register_optimizer_step_pre_hook(lambda *_: seen.append("all before")),
        module.register_optimizer_step_post_hook(lambda *_: seen.append("all after")),
    ]
    optimizer = optim.SGD([nn.Parameter(plugrad.ones(1))])
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o,), {"closure": lambda: 7}))
    assert optimizer.step() == 7
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert seen == ["all before", "all after"]


def test_hooks_of_state_dicts() -> None:
    optimizer = optim.SGD([nn.Parameter(plugrad.ones(1))])
    seen: list[str] = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("second"))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, found: {**found, "extra": 1})
    saved = optimizer.state_dict()
    assert (seen, saved["extra"]) == (["first", "second"], 1)

    def other_rate(_: Any, given: Any) -> Any:
        return {**given, "param_groups": [{**given["param_groups"][0], "lr": 5.0}]}

    optimizer.register_load_state_dict_pre_hook(other_rate)
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optimizer.load_state_dict(saved)
    assert (optimizer.param_groups[0]["lr"], seen[-1]) == (5.0, "loaded")


def test_subclasses_as_packages_write_them() -> None:
    base = import_module("plugrad.optim.optimizer")

    class Signs(base.Optimizer):  # type: ignore[misc]  # loaded by name, as by a package
        def __init__(self, params: Any, lr: float = base.required) -> None:
            super().__init__(params, {"lr": lr, "differentiable": False})

        @base._use_grad_for_differentiable
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state["steps"] = state.get("steps", 0) + 1
                    p.add_(p.grad.sign(), alpha=-base._get_value(group["lr"]))

    parameter = nn.Parameter(plugrad.tensor([1.0, -1.0]))
    optimizer = Signs([{"params": [parameter], "lr": 0.5}])
    parameter.square().sum().backward()
    calls: list[object] = []
    optimizer.register_step_post_hook(lambda *given: calls.append(given))
    optimizer.step()
    assert (parameter.tolist(), optimizer.state[parameter], len(calls)) == (
        [0.5, -0.5],
        {"steps": 1},
        1,
    )
    with pytest.raises(ValueError, match="required optimization parameter lr"):
        Signs([parameter])


def test_the_rate_of_muon_may_be_a_tensor() -> None:
    found = []
    for rate in (0.5, plugrad.tensor(0.5)):
        weight = plugrad.nn.Parameter(plugrad.eye(2))
        weight.grad = plugrad.ones(2, 2)
        plugrad.optim.Muon([weight], lr=rate).step()
        found.append(weight.tolist())
    assert found[0] == found[1]
