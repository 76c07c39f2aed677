"""One module per family of cases.

A family has

* `NAME: str`, what the command line and the summary call it,
* `def run_case(seed: int) -> Finding | None`, one case, fully determined by its seed,

and may have

* `def program_of(seed: int) -> str`, the case's program as text to paste, written without running
  it: shown when the case ends its process or does not end,
* `def prepare() -> None`, what is done once in a worker, however long it takes,
* `SHARE: float = 1.0`, its part of the time, compared with other families,
* `TIME_LIMIT: float = 30.0`, seconds after which a case counts as one that hangs,
* `NEEDS: tuple[str, ...] = ()`, modules without which it is left out.

Every module here that is not private is a family.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tests.torture.finding import Finding


@dataclass(frozen=True)
class Family:
    """A family, as the runner sees it; its module is imported where its cases run."""

    module: str
    name: str
    share: float
    time_limit: float
    missing: tuple[str, ...]

    @classmethod
    def of(cls, module: ModuleType) -> Family:
        needs: tuple[str, ...] = getattr(module, "NEEDS", ())
        return cls(
            module.__name__,
            module.NAME,
            getattr(module, "SHARE", 1.0),
            getattr(module, "TIME_LIMIT", 30.0),
            tuple(name for name in needs if importlib.util.find_spec(name) is None),
        )

    def load(self) -> Any:
        return importlib.import_module(self.module)

    def prepare(self) -> None:
        getattr(self.load(), "prepare", bool)()

    def run_case(self, seed: int) -> Finding | None:
        found: Finding | None = self.load().run_case(seed)
        return found

    def program_of(self, seed: int) -> str:
        """What shows a case that did not come back."""
        write = getattr(self.load(), "program_of", None)
        if write is not None:
            return str(write(seed))
        return f"from {self.module} import run_case  # from the root of a checkout\n" + (
            f"print(run_case({seed}))"
        )


def all_families(package: str = __name__) -> list[Family]:
    """The families of a package, by name."""
    parent = importlib.import_module(package)
    names = [name for _, name, _ in pkgutil.iter_modules(parent.__path__) if name[0] != "_"]
    found = [Family.of(importlib.import_module(f"{package}.{name}")) for name in names]
    return sorted(found, key=lambda family: family.name)
