"""Writes PyTorch's names and operators, for plugrad-as-torch:
`python tools/torch_names.py`.

It needs the release of PyTorch that plugrad follows. Run it again for another release.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "plugins" / "as_torch" / "plugrad_as_torch"
FILE = FOLDER / "names.json"
OPERATORS = FOLDER / "operators.json"

# The parts of PyTorch to list. They leave out modules for other machines and devices, for compilers
# and exporters, and for quantized, sparse and nested tensors.
PARTS = {
    *("amp", "autograd", "backends", "cpu", "cuda", "distributions", "func", "functional", "hub"),
    *("jit", "library", "linalg", "fft", "masked", "multiprocessing", "nn", "onnx", "optim"),
    *("overrides", "profiler", "random", "return_types", "serialization", "signal", "special"),
    *("storage", "testing", "types", "utils", "version", "compiler", "accelerator", "fx"),
    *("distributed", "torch_version"),
}
# From these, only names that the module itself defines, which programs import.
SHALLOW = {"distributed", "fx", "jit", "multiprocessing", "onnx", "profiler", "testing"}
LEFT_OUT = (
    *("torch.nn.intrinsic", "torch.nn.qat", "torch.nn.quantizable", "torch.nn.quantized"),
    *("torch.nn.backends", "torch.utils.benchmark", "torch.utils.bottleneck"),
    *(
        "torch.utils.jit",
        "torch.utils.hipify",
        "torch.utils.backcompat",
        "torch.utils.serialization",
    ),
    *("torch.utils.tensorboard", "torch.utils.viz", "torch.utils.data.datapipes"),
    *("torch.utils.mkldnn", "torch.utils.mobile_optimizer", "torch.utils.show_pickle"),
    *("torch.utils.bundled_inputs", "torch.utils.debug_log", "torch.utils.model_dump"),
    *("torch.utils.collect_env", "torch.utils.backend_registration", "torch.utils.cpp_backtrace"),
    *("torch.utils.file_baton", "torch.utils.throughput_benchmark", "torch.nn.cpp"),
    *("torch.utils.data.graph", "torch.utils.data.backward_compatibility", "torch.cuda.gds"),
    *("torch.backends.python_native", "torch.backends.xeon", "torch.backends.kleidiai"),
    *("torch.backends.cusparselt", "torch.backends.nnpack", "torch.cuda.tunable"),
    *("torch.cuda.green_contexts", "torch.cuda.sparse", "torch.compiler.config"),
)
# Operators of libraries and kinds of tensors that plugrad does not have.
FOREIGN = re.compile(
    "cudnn|fbgemm|miopen|mkldnn|quantize|q_per|qint|QInt|qscheme|quint|QUInt|sparse|vitals|xnn|"
    "^per_|^q_|qparams|fake_quant|^parse_|import_ir|^unify_|^merge_type|^sym_|_ipu|_xla|vulkan|"
    "_out$|DataPipe|datapipe"
)
WITH_FOREIGN = ("torch", "torch.Tensor", "torch.return_types")
# Classes for users that PyTorch makes in C++.
CLASSES = {"Event", "Generator", "Stream", "Tag"}
# Modules of functions that nn.functional renames.
BUILTIN = ("", "torch", "torch._C", "torch._C._nn", "torch._jit_internal")


def module_names(folder: Path, name: str = "torch") -> Iterator[str]:
    """The public modules below a folder, by their files."""
    yield name
    for path in sorted(folder.iterdir()):
        full = f"{name}.{path.stem}"
        if path.name.startswith("_") or (name == "torch" and path.stem not in PARTS):
            continue
        if full.startswith(LEFT_OUT) or name.removeprefix("torch.") in SHALLOW:
            continue
        if path.suffix == ".py":
            yield full
        elif (path / "__init__.py").is_file():
            yield from module_names(path, full)


def is_own(module: ModuleType, name: str) -> bool:
    """Whether a public name of a module is PyTorch's, and not just imported by the module."""
    value: Any = getattr(module, name, None)
    if isinstance(value, ModuleType):
        return False
    home = str(getattr(value, "__module__", None) or "")
    if module.__name__ == "torch":
        if inspect.isclass(value):
            is_internal = type(value).__name__ == "pybind11_type" and name not in CLASSES
            return home.startswith("torch") and not is_internal
        if callable(value):
            return home.startswith("torch") or not home
        return type(value).__module__ == "torch" or isinstance(value, float)
    if module.__name__ == "torch.nn.functional":
        return callable(value) and (home in BUILTIN or home == "torch.nn.functional")
    if inspect.isbuiltin(value):  # torch.linalg.eigh, by another name in torch._C
        return True
    # Names that it defines, and names one level below.
    return home.startswith(module.__name__)


def is_defined_in(module: ModuleType, name: str) -> bool:
    """Whether a name is a function or class that the module itself defines."""
    value: Any = getattr(module, name, None)
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return False
    return value.__module__ == module.__name__ and value.__name__ == name


def names_of(module: ModuleType) -> set[str]:
    """The public names of a module: those in its `__all__`, if it has one, and the functions and
    classes that it defines, because programs import these, too."""
    declared = getattr(module, "__all__", None)
    if declared is None or module.__name__ in ("torch", "torch.nn.functional"):
        return {name for name in dir(module) if is_own(module, name)}
    # A module with the name of its own function counts as the function.
    names = {name for name in declared if not isinstance(getattr(module, name, 0), ModuleType)}
    return (names | {name for name in dir(module) if is_defined_in(module, name)}) - {"Tensor"}


def render() -> str:
    """The expected contents of the file."""
    import torch

    found = {"torch.Tensor": set(dir(torch.Tensor))}
    for name in module_names(Path(str(torch.__file__)).parent):
        try:
            module = importlib.import_module(name)
        except ImportError:  # of another system
            continue
        found[name] = names_of(module)
    lines = {}
    for name, names in sorted(found.items()):
        public = {each for each in names if not each.startswith("_")}
        if name in WITH_FOREIGN:
            public = {each for each in public if not FOREIGN.search(each)}
        if public:
            lines[name] = " ".join(sorted(public))
    return json.dumps(lines, indent=0) + "\n"


def render_operators() -> str:
    """PyTorch's operators, `torch.ops.aten`, and their overloads."""
    import torch

    found: dict[str, set[str]] = {}
    for full in torch._C._dispatch_get_all_op_names():
        namespace, _, name = full.partition("::")
        operator, _, overload = name.partition(".")
        if namespace == "aten":
            found.setdefault(operator, set()).add(overload or "default")
    lines = {name: " ".join(sorted(overloads)) for name, overloads in sorted(found.items())}
    return json.dumps(lines, indent=0) + "\n"


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        FILE.write_text(render(), encoding="utf-8")
        OPERATORS.write_text(render_operators(), encoding="utf-8")
