"""The import hook: `import torch` and `import torch.nn.functional` give modules that contain
plugrad's objects under PyTorch's names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import Any, Final

from plugrad.plugins.printing import set_printed_name
from plugrad_as_torch.layout import TORCH_VERSION, layouts, torch_names
from plugrad_as_torch.lookup import (
    file_of,
    find,
    has_module,
    missing,
    names_of,
    no_module,
    set_in_source,
)
from plugrad_as_torch.spawned import tell_new_processes, tell_no_more

_ORIGIN: Final = "plugrad.as_torch"

# What the distribution of PyTorch brings: functorch is the older name of torch.func.
_PACKAGES: Final = ("torch", "functorch")


class TorchModule(ModuleType):
    """A module of PyTorch. It looks up a name at its first use and keeps the result."""

    def __getattr__(self, name: str) -> Any:
        module = self.__name__
        if name == "__all__":
            return names_of(module)
        if name == "__file__":
            return file_of(module)
        if module == name == "torch":  # PyTorch's has itself, too
            return self
        try:
            found = find(module, name)
        except AttributeError as error:
            full = f"{module}.{name}"
            if not has_module(full) or sys.modules.get(module) is not self:
                raise AttributeError(str(error), name=name, obj=self) from None
            return importlib.import_module(full)
        self.__dict__[name] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system sets a submodule on its parent. Where PyTorch has a function of that
        # name, such as torch.autograd.gradcheck, the attribute is the function.
        if isinstance(value, TorchModule) and _is_other(self.__name__, name):
            return
        super().__setattr__(name, value)
        set_in_source(self.__name__, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *names_of(self.__name__)})


def _is_other(module: str, name: str) -> bool:
    """Whether a module of PyTorch has something else than a submodule under this name."""
    return name in torch_names().get(module, ()) or name in layouts()[module].aliases


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return TorchModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run: names are loaded on first use, except where programs read the
        module's `__dict__`."""
        if layouts()[module.__name__].listed:
            names = names_of(module.__name__)
            module.__dict__.update({name: find(module.__name__, name) for name in names})


class _Metadata(Distribution):
    """What `importlib.metadata.version("torch")` reads."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {TORCH_VERSION}\n"

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(f"{path}: torch is plugrad here and has no files")


class _TorchFinder(MetaPathFinder):
    """Finds `torch` and its submodules; other finders handle everything else."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in _PACKAGES:
            return None
        if has_module(fullname):
            # All are packages, so Python calls this finder for a name missing in `from torch.nn
            # import X`.
            return ModuleSpec(fullname, _Loader(), origin=_ORIGIN, is_package=True)
        module, _, name = fullname.rpartition(".")
        if name in torch_names().get(module, ()):
            raise ImportError(
                f"cannot import name {name!r} from {module!r}: {missing(module, name)}",
                name=module,
            )
        # If this error had a name, `from torch import distributions` would ignore it and raise a
        # less helpful one.
        raise ModuleNotFoundError(no_module(fullname))

    @staticmethod
    def find_distributions(
        context: DistributionFinder.Context = DistributionFinder.Context(),  # noqa: B008
    ) -> Iterable[Distribution]:
        """The metadata of torch, for programs that read its version."""
        return [_Metadata()] if context.name == "torch" else []


# Whether plugrad is installed under PyTorch's name, and the name it printed before.
_before: list[str] = []


def is_installed() -> bool:
    """Whether `torch` means plugrad in this process."""
    return _TorchFinder in sys.meta_path


def install() -> None:
    """Let `torch` mean plugrad in this process, and print objects as PyTorch does. Processes that
    multiprocessing starts later do the same.

    Raises:
        RuntimeError: PyTorch itself is already imported.
    """
    if is_installed():
        return
    if "torch" in sys.modules:
        raise RuntimeError(
            "plugrad.as_torch.install(): PyTorch itself is imported in this process already; call "
            "install() before anything imports torch, or start the program with "
            "`python -m plugrad.as_torch`"
        )
    sys.meta_path.insert(0, _TorchFinder)
    _before.append(set_printed_name("torch"))
    tell_new_processes(install)


def uninstall() -> None:
    """Undo `install`: the next `import torch` imports PyTorch, if installed.

    Modules that imported torch in the meantime keep plugrad.
    """
    if not is_installed():
        return
    tell_no_more()
    set_printed_name(_before.pop())
    sys.meta_path.remove(_TorchFinder)
    for name, module in list(sys.modules.items()):
        if isinstance(module, TorchModule):
            del sys.modules[name]
