"""register_vmap: rules are kept, checked and found again."""

from typing import Any

import pytest

import plugrad
from plugrad.library import Library, VmapInfo, custom_op, get_vmap_rule, register_vmap


def _mul(ns: str) -> Any:
    @custom_op(f"{ns}::mul", mutates_args=())
    def mul(x: plugrad.Tensor, y: plugrad.Tensor) -> plugrad.Tensor:
        return x * y

    @mul.register_vmap
    def _(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
        x = x.unsqueeze(-1) if in_dims[0] is None else x.movedim(in_dims[0], -1)
        y = y.unsqueeze(-1) if in_dims[1] is None else y.movedim(in_dims[1], -1)
        return x * y, -1

    return mul


def test_a_rule_is_found_by_operator_and_name(ns: str) -> None:
    mul = _mul(ns)
    rule = get_vmap_rule(f"{ns}::mul")
    assert rule is not None
    assert rule is get_vmap_rule(mul._opoverload)
    x, y = plugrad.arange(6.0).reshape(2, 3), plugrad.arange(2.0)
    output, dim = rule.apply(VmapInfo(3), (1, None), (x, y))
    assert dim == -1
    assert output.tolist() == [[0.0, 0.0, 0.0], [3.0, 4.0, 5.0]]


def test_a_rule_goes_with_its_library(ns: str) -> None:
    with Library(ns, "DEF") as own:
        own.define("f(Tensor x) -> Tensor")
        register_vmap(f"{ns}::f", lambda info, dims, x: (x, 0), lib=own)
        first = get_vmap_rule(f"{ns}::f")
        with Library(ns, "IMPL") as other:
            register_vmap(f"{ns}::f", lambda info, dims, x: (x, 0), lib=other)
            assert get_vmap_rule(f"{ns}::f") is not first
        assert get_vmap_rule(f"{ns}::f") is first
    assert get_vmap_rule(f"{ns}::f") is None


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (plugrad.ones(3), r"must return a tuple \(output, out_dims\), got Tensor"),
        (
            (plugrad.ones(2), 0),
            r"dimension 0 for an output of shape \[2\], but the batch has size 3",
        ),
        ((plugrad.ones(3), 1), "batch dimension 1 for an output of shape"),
        (([plugrad.ones(3)], 0), "returned 1 outputs, so that out_dims must be as many"),
    ],
)
def test_what_a_rule_returns_is_checked(returned: Any, message: str, ns: str) -> None:
    mul = _mul(ns)
    mul.register_vmap(lambda info, in_dims, x, y: returned)
    rule = get_vmap_rule(mul._opoverload)
    assert rule is not None
    with pytest.raises(RuntimeError, match=message):
        rule.apply(VmapInfo(3), (0, 0), (plugrad.ones(3), plugrad.ones(3)))


def test_keyword_only_tensors_have_no_rule(lib: Any, ns: str) -> None:
    own = lib.library.Library(ns, "FRAGMENT")
    own.define("f(Tensor x, *, Tensor y) -> Tensor")
    with pytest.raises(NotImplementedError, match="register_vmap with kwarg-only Tensor args"):
        lib.library.register_vmap(f"{ns}::f", lambda info, dims, x: (x, 0), lib=own)
    own._destroy()


def test_vmap_asks_the_rule_and_loops_without_one() -> None:
    @custom_op("rules::twice", mutates_args=())
    def twice(x: plugrad.Tensor) -> plugrad.Tensor:
        return plugrad.from_numpy(x.numpy() * 2)

    batch = plugrad.arange(6.0).reshape(2, 3)
    with pytest.warns(UserWarning, match="there is no batching rule for rules::twice"):
        assert plugrad.vmap(twice)(batch).tolist() == (2 * batch).tolist()
    seen: list[object] = []

    @register_vmap(twice)
    def rule(info: VmapInfo, in_dims: tuple[int | None, ...], x: plugrad.Tensor) -> object:
        seen.append((info.batch_size, in_dims, tuple(x.shape)))
        return twice(x), in_dims[0]

    assert plugrad.vmap(twice, in_dims=1)(batch).tolist() == (2 * batch.T).tolist()
    assert seen == [(3, (1,), (2, 3))]
