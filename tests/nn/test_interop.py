"""Other libraries and Python itself with tensors: what PyTorch's tensors do there."""

from __future__ import annotations

import copy
import io
import json
import math
import multiprocessing
import pickle
import random
import statistics
import struct
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import plugrad


def x_of(lib: Any) -> Any:
    return lib.arange(6.0).reshape(2, 3)


def passed(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def first_changed(copied: Any) -> Any:
    """The second element after a write to the first."""
    copied[0].fill_(7.0)
    return copied[1].tolist()


def tied(lib: Any) -> Any:
    """A model that uses one weight twice."""
    net = lib.nn.ModuleList([lib.nn.Linear(2, 2), lib.nn.Linear(2, 2)])
    net[1].weight = net[0].weight
    return net


def with_grad(lib: Any) -> Any:
    weight = lib.nn.Parameter(lib.ones(2))
    weight.grad = lib.zeros(2)
    weight.note = [1]
    return weight


def stepped(lib: Any, copied: Callable[[Any], Any]) -> list[Any]:
    """A model and its optimizer that are copied together go on together."""
    lib.manual_seed(0)
    net = lib.nn.Linear(2, 1)
    optimizer = lib.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        net(lib.ones(3, 2)).square().sum().backward()
        optimizer.step()
        net, optimizer = copied((net, optimizer))
    return [round(value, 5) for value in net.weight.flatten().tolist()]


# What is tried, by name: from the library to something that can be compared.
PYTHON: dict[str, Callable[[Any], Any]] = {
    "pickle of a tensor": lambda lib: passed(x_of(lib)).tolist(),
    "pickle of strides": lambda lib: passed(x_of(lib).t()).stride(),
    "pickle of a leaf": lambda lib: passed(lib.ones(2, requires_grad=True)).requires_grad,
    "pickle of a result": lambda lib: passed(lib.ones(2, requires_grad=True) * 2).is_leaf,
    "pickle of a parameter": lambda lib: type(passed(lib.nn.Parameter(x_of(lib)))).__name__,
    "pickle of attributes": lambda lib: passed(with_grad(lib)).note,
    "pickle of a dtype": lambda lib: passed(lib.float16) is lib.float16,
    "pickle of a device": lambda lib: str(passed(lib.device("cpu"))),
    "pickle of a size": lambda lib: list(passed(x_of(lib).shape)),
    "pickle of a generator": lambda lib: lib.rand(
        1, generator=passed(lib.Generator().manual_seed(3))
    ).item(),
    "pickle of a module": lambda lib: list(passed(lib.nn.BatchNorm1d(2)).state_dict()),
    "pickle of tied weights": lambda lib: (lambda net: net[0].weight is net[1].weight)(
        passed(tied(lib))
    ),
    "pickle of an optimizer": lambda lib: stepped(lib, passed),
    "pickle of a hook": lambda lib: pickle.dumps(
        lib.nn.ReLU().register_forward_hook(lambda *rest: None) and lib.nn.ReLU
    )[:0],
    "deepcopy of a leaf": lambda lib: (
        lambda p: (type(p).__name__, p.grad, p.requires_grad, hasattr(p, "note"))
    )(copy.deepcopy(with_grad(lib))),
    "deepcopy of a result": lambda lib: copy.deepcopy(lib.ones(2, requires_grad=True) * 2),
    "deepcopy of views": lambda lib: (lambda a: first_changed(copy.deepcopy([a[:2], a])))(
        lib.zeros(3)
    ),
    "deepcopy of strides": lambda lib: copy.deepcopy(x_of(lib).t()[1:]).stride(),
    "deepcopy leaves the original": lambda lib: (
        lambda a: first_changed([copy.deepcopy(a[:2]), a])
    )(lib.zeros(3)),
    "deepcopy of tied weights": lambda lib: (lambda net: net[0].weight is net[1].weight)(
        copy.deepcopy(tied(lib))
    ),
    "deepcopy of an optimizer": lambda lib: stepped(lib, copy.deepcopy),
    "copy shares memory": lambda lib: (lambda a: first_changed([copy.copy(a), a]))(lib.zeros(2)),
    "json": lambda lib: json.dumps(x_of(lib).tolist()),
    "json of a tensor": lambda lib: json.dumps(x_of(lib)),
    "format": lambda lib: f"{x_of(lib)[0, 1]:.3f} {x_of(lib)[0, 1]} {x_of(lib).sum():>8}",
    "math": lambda lib: (math.sqrt(x_of(lib)[0, 2]), float(x_of(lib)[0, 1]), int(x_of(lib)[1, 1])),
    "index of a list": lambda lib: [10, 20, 30][lib.tensor(1)],
    "range": lambda lib: list(range(lib.tensor(3))),
    "sorted": lambda lib: [t.item() for t in sorted([lib.tensor(3), lib.tensor(1)])],
    "max of Python": lambda lib: max(lib.tensor(3), lib.tensor(1)).item(),
    "sum of Python": lambda lib: sum(x_of(lib)).tolist(),
    "set": lambda lib: len({lib.ones(1), lib.ones(1)}),
    "in": lambda lib: (3.0 in x_of(lib), lib.tensor(9.0) in x_of(lib)),
    "statistics": lambda lib: statistics.mean(x_of(lib)[0].tolist()),
    "random.sample": lambda lib: len(random.sample(list(x_of(lib)), 1)),
    "struct": lambda lib: struct.pack("f", x_of(lib)[0, 1]),
    "memoryview": lambda lib: memoryview(x_of(lib)),
}
NUMPY: dict[str, Callable[[Any], Any]] = {
    "asarray shares": lambda lib: (lambda a: (np.asarray(a).fill(2.0), a.tolist())[1])(lib.ones(2)),
    "array copies": lambda lib: (lambda a: (np.array(a).fill(2.0), a.tolist())[1])(lib.ones(2)),
    "asarray with gradients": lambda lib: np.asarray(lib.ones(1, requires_grad=True)),
    "from_numpy shares": lambda lib: (lambda a: (lib.from_numpy(a).fill_(3.0), a.tolist())[1])(
        np.zeros(1)
    ),
    "from_numpy of a negative stride": lambda lib: lib.from_numpy(np.arange(3)[::-1]),
    "dtype of scalars": lambda lib: str(lib.tensor([np.float32(1), np.float64(2)]).dtype),
    "a function of NumPy": lambda lib: type(np.sin(x_of(lib))).__name__,
    "from_dlpack shares": lambda lib: (
        lambda a: np.from_dlpack(a).__array_interface__["data"][0] == a.data_ptr()
    )(lib.ones(2)),
    "from_dlpack of NumPy": lambda lib: lib.from_dlpack(np.ones(2)).tolist(),
    "from_dlpack with gradients": lambda lib: np.from_dlpack(lib.ones(1, requires_grad=True)),
    "from_dlpack of booleans": lambda lib: str(np.from_dlpack(x_of(lib) > 1).dtype),
    "dlpack device": lambda lib: tuple(map(int, x_of(lib).__dlpack_device__())),
    "to dlpack and back": lambda lib: lib.from_dlpack(x_of(lib).__dlpack__()).tolist(),
}


def pandas_table(pd: Any) -> dict[str, Callable[[Any], Any]]:
    return {
        "a frame of a tensor": lambda lib: (
            lambda frame: (frame.to_numpy().tolist(), [str(kind) for kind in frame.dtypes])
        )(pd.DataFrame(x_of(lib), columns=list("abc"))),
        "a frame of columns": lambda lib: (
            pd.DataFrame({"a": x_of(lib)[:, 0], "b": x_of(lib)[:, 1]}).to_numpy().tolist()
        ),
        "a column": lambda lib: (lambda column: (column.tolist(), str(column.dtype)))(
            pd.Series(x_of(lib)[0])
        ),
        "a new column": lambda lib: (lambda frame: str(frame.assign(c=lib.ones(2)).dtypes["c"]))(
            pd.DataFrame({"a": [1, 2]})
        ),
        "a tensor of a frame": lambda lib: str(lib.tensor(pd.DataFrame({"a": [1]}).values).dtype),
        "a tensor of a column": lambda lib: (lambda made: (made.tolist(), str(made.dtype)))(
            lib.tensor(pd.Series([1.0, 2.0]))
        ),
        "as_tensor of a column": lambda lib: str(lib.as_tensor(pd.Series([1, 2])).dtype),
        "rows by number": lambda lib: pd.Series([1, 2, 3]).iloc[lib.tensor([0, 2])].tolist(),
        "with gradients": lambda lib: pd.DataFrame(lib.ones(2, 2, requires_grad=True)),
    }


def matplotlib_table(plt: Any) -> dict[str, Callable[[Any], Any]]:
    return {
        "a line": lambda lib: plt.plot(x_of(lib)[0], x_of(lib)[1])[0].get_ydata().tolist(),
        "numbers in a list": lambda lib: plt.plot(list(x_of(lib)[0]))[0].get_ydata().tolist(),
        "a picture": lambda lib: plt.imshow(x_of(lib)).get_array().shape,
        "a histogram": lambda lib: plt.hist(x_of(lib).flatten())[0].tolist(),
        "bars": lambda lib: [
            float(bar.get_height()) for bar in plt.bar(lib.arange(3), x_of(lib)[0])
        ],
        "points": lambda lib: (
            plt.scatter(x_of(lib)[0], x_of(lib)[1], c=x_of(lib)[0]).get_offsets().tolist()
        ),
        "errors": lambda lib: (
            type(plt.errorbar(x_of(lib)[0], x_of(lib)[1], yerr=x_of(lib)[0])).__name__
        ),
        "a surface": lambda lib: plt.contourf(lib.arange(9.0).reshape(3, 3)).get_array().tolist(),
        "a level": lambda lib: plt.axhline(x_of(lib)[0, 1]).get_ydata()[0] == 1.0,
        "with gradients": lambda lib: plt.plot(lib.ones(2, requires_grad=True)),
    }


def sklearn_table(sklearn: Any) -> dict[str, Callable[[Any], Any]]:
    from sklearn import cluster, decomposition, linear_model, metrics, model_selection
    from sklearn.preprocessing import StandardScaler

    def data(lib: Any) -> tuple[Any, Any]:
        return lib.arange(24.0).reshape(8, 3) % 5, lib.arange(8) % 2

    return {
        "a classifier": lambda lib: (
            linear_model.LogisticRegression().fit(*data(lib)).predict(data(lib)[0]).tolist()
        ),
        "a scaler": lambda lib: StandardScaler().fit_transform(data(lib)[0]).round(4).tolist(),
        "components": lambda lib: decomposition.PCA(2).fit_transform(data(lib)[0]).shape,
        "clusters": lambda lib: (
            cluster.KMeans(2, n_init=1, random_state=0).fit(data(lib)[0]).labels_.tolist()
        ),
        "accuracy": lambda lib: float(
            metrics.accuracy_score(data(lib)[1], (data(lib)[0].sum(1) > 5).long())
        ),
        "area under the curve": lambda lib: float(
            metrics.roc_auc_score(data(lib)[1], data(lib)[0][:, 0])
        ),
        "confusion": lambda lib: metrics.confusion_matrix(data(lib)[1], data(lib)[1]).tolist(),
        "a split": lambda lib: [
            (type(part).__name__, part.tolist())
            for part in model_selection.train_test_split(*data(lib), random_state=0)
        ],
        "folds": lambda lib: [
            data(lib)[0][rows].tolist() for rows, _ in model_selection.KFold(2).split(data(lib)[0])
        ],
        "with gradients": lambda lib: StandardScaler().fit(lib.ones(2, 2, requires_grad=True)),
    }


def joblib_table(joblib: Any) -> dict[str, Callable[[Any], Any]]:
    def dumped(lib: Any) -> Any:
        file = io.BytesIO()
        joblib.dump({"x": x_of(lib), "net": lib.nn.Linear(2, 1)}, file)
        file.seek(0)
        found = joblib.load(file)
        return found["x"].tolist(), list(found["net"].state_dict())

    return {
        "dump and load": dumped,
        "threads": lambda lib: [
            total.item()
            for total in joblib.Parallel(2, backend="threading")(
                joblib.delayed(lib.sum)(row) for row in x_of(lib)
            )
        ],
    }


def outcome(work: Callable[[Any], Any], library: Any) -> Any:
    """The result, or the kind of the error and its first words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = work(library)
        except Exception as error:
            words = str(error).replace("plugrad", "torch").split(". ")[0].rstrip(".")
            return type(error).__name__, words[:60]
    return str(result).replace("plugrad", "torch")


@pytest.mark.parametrize("name", [*PYTHON, *NUMPY])
def test_tensors_do_in_python_what_torchs_do(torch: ModuleType, name: str) -> None:
    work = {**PYTHON, **NUMPY}[name]
    assert outcome(work, plugrad) == outcome(work, torch)


@pytest.mark.parametrize(
    ("package", "table"),
    [
        ("pandas", pandas_table),
        ("matplotlib.pyplot", matplotlib_table),
        ("sklearn", sklearn_table),
        ("joblib", joblib_table),
    ],
)
def test_packages_do_with_tensors_what_they_do_with_torchs(
    torch: ModuleType, monkeypatch: pytest.MonkeyPatch, package: str, table: Any
) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    found = table(pytest.importorskip(package))
    for name, work in found.items():
        assert outcome(work, plugrad) == outcome(work, torch), name


def double(queue: Any, results: Any) -> None:
    """What another process does."""
    tensor, net = queue.get()
    results.put((tensor * 2, net(tensor).shape, net.weight))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_tensors_and_modules_go_to_another_process_and_back(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    context = multiprocessing.get_context(method)
    queue, results = context.Queue(), context.Queue()
    worker = context.Process(target=double, args=(queue, results))
    worker.start()
    net = plugrad.nn.Linear(3, 2)
    queue.put((x_of(plugrad), net))
    doubled, shape, weight = results.get(timeout=60)
    worker.join(60)
    assert worker.exitcode == 0
    assert doubled.tolist() == (x_of(plugrad) * 2).tolist()
    assert shape == (2, 2)
    assert type(weight) is plugrad.nn.Parameter
    assert plugrad.equal(weight, net.weight)


def test_results_with_a_graph_do_not_go_to_another_process() -> None:
    # PyTorch refuses them in its own multiprocessing only; pickle takes them as leaves there too.
    made = passed(plugrad.ones(2, requires_grad=True) * 2)
    assert made.is_leaf
    assert made.requires_grad


def test_a_pool_of_processes_computes(torch: ModuleType) -> None:
    pytest.importorskip("joblib")
    from joblib import Parallel, delayed

    sums = Parallel(n_jobs=2)(delayed(plugrad.sum)(row) for row in x_of(plugrad))
    assert [total.item() for total in sums] == [3.0, 12.0]
