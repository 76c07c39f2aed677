"""Which kernels a backend computes with, operator by operator: its own and other packages'.

Each operator has a list of candidates, which is determined once: the kernel that the configuration
chooses, preferred packages' kernels, variants for this processor, the backend's own kernel, and, if
it has none, another package's. A candidate that returns `NotImplemented` declines, and the next one
runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from plugrad.dispatch.backends.backend import Backend
from plugrad.dispatch.backends.candidates import DECLINED as DECLINED
from plugrad.dispatch.backends.candidates import Candidate, Candidates, VariantChoice
from plugrad.dispatch.backends.variants import Variant


@final
class Brought:
    """Kernels for a backend from another package.

    Attributes:
        owner: the distribution that provides them, with its version.
        table: the kernels, by operator's name.
        preferred: whether they come before the backend's own.
        variants: its variants, in the order in which they are tried.
    """

    def __init__(
        self,
        owner: str,
        table: Mapping[str, Any],
        preferred: bool = False,
        variants: Sequence[Variant] = (),
    ) -> None:
        self.owner = owner
        self.table: dict[str, Any] = dict(table)
        self.preferred = preferred
        self.variants: list[Variant] = list(variants)

    def equals(self, other: Brought) -> bool:
        """Whether both are the same kernels of the same owner, with the same rank."""
        same = self.owner == other.owner and self.preferred == other.preferred
        return same and self.table == other.table and self.variants == other.variants


@final
class KernelSources:
    """The kernels for one backend, and which of them are used.

    Attributes:
        own: the backend's own kernels.
        origin: the package that provides them.
        brought: the kernels of other packages, preferred ones first, in their order.
        chosen: by operator's name, with or without overload, the package that comes first.
        conflict: makes a placeholder for a kernel that several others provide, from the operator's
            name and the owners.
        features: the hardware features that variants may use, by name; false if they may not.
    """

    def __init__(self, own: dict[str, Any], origin: str, backend: Backend) -> None:
        self.own = own
        self.origin = origin
        self.backend = backend
        self.features: dict[str, bool] = {}
        self.brought: list[Brought] = []
        self.chosen: dict[str, str] = {}
        self.conflict: Callable[[str, list[str]], Any] | None = None
        self._raw: dict[str, Any] = {}

    def settle(
        self,
        brought: list[Brought],
        chosen: dict[str, str],
        conflict: Callable[[str, list[str]], Any] | None,
        features: Mapping[str, bool] | None = None,
    ) -> bool:
        """Replace the kernels that others provided before by those that they provide now; return
        whether anything changed."""
        given = self.features if features is None else dict(features)
        same = chosen == self.chosen and given == self.features
        same = same and len(brought) == len(self.brought)
        if same and all(a.equals(b) for a, b in zip(brought, self.brought, strict=True)):
            return False
        self.brought = brought
        self.chosen = chosen
        self.conflict = conflict
        self.features = given
        self._raw = {}
        return True

    def raw(self, name: str, overload: str) -> Any:
        """What computes an operator on arrays: its only candidate, or all as one; None if there is
        none."""
        full = name + "." + overload if overload else name
        known = self._raw
        if full in known:
            return known[full]
        found = self.candidates(name, overload)
        raw: Any = None
        qualified = full if "::" in full else f"plugrad::{full}"
        if any(each.variant is not None for each in found):
            raw = VariantChoice(qualified, found, self.backend)
        elif len(found) == 1:
            raw = found[0].kernel
        elif found:
            raw = Candidates(qualified, found)
        known[full] = raw
        return raw

    def candidates(self, name: str, overload: str) -> list[Candidate]:
        """The kernels of an operator, in the order in which they are tried."""
        found = self._claims(name, overload, True)
        own = self._own(name, overload)
        others = self._claims(name, overload, False)
        if own:
            found += own
        elif len(others) == 1:
            found += others
        elif others and not found and self.conflict is not None:
            stand_in = self.conflict(others[0].name, [other.owner for other in others])
            found.append(Candidate(stand_in, "", False, others[0].name))
        owner = self.chosen_owner(name, overload)
        variants = self._variants(name, overload, owner)
        first = [each for each in [*found, *others] if owner and each.owner == owner][:1]
        if owner and (first or variants):
            # Only the chosen package's own variants come before its kernel.
            rest = [each for each in found if each.owner and each.owner != owner]
            return [*variants, *first, *rest]
        if not variants:
            return found
        preferred = [each.owner for each in self.brought if each.preferred]
        before = [each for each in found if each.owner in preferred]
        after = [each for each in found if each.owner not in preferred]
        wanted = [each for each in variants if each.owner in preferred]
        return [*wanted, *before, *[each for each in variants if each not in wanted], *after]

    def all_variants(self) -> list[Candidate]:
        """All variants, whether the processor has what they need or not."""
        return [self._variant(brought, one) for brought in self.brought for one in brought.variants]

    def claims(self, name: str, overload: str) -> list[Candidate]:
        """Every kernel that there is for an operator, whether it is used or not."""
        own = self._own(name, overload)
        return [*self._claims(name, overload, True), *own, *self._claims(name, overload, False)]

    def chosen_owner(self, name: str, overload: str) -> str:
        """The owner that the configuration chooses for an operator; empty if it chooses none."""
        if not self.chosen:
            return ""
        return self.chosen.get(f"{name}.{overload}") or self.chosen.get(name) or ""

    def _variants(self, name: str, overload: str, owner: str) -> list[Candidate]:
        """The variants that may run, those with the highest priority first; if somebody's kernel
        is chosen, the owner's."""
        full = name + "." + overload if overload else name
        found: list[Candidate] = []
        for brought in self.brought:
            if owner and brought.owner != owner:
                continue
            found += [
                self._variant(brought, one)
                for one in brought.variants
                if one.operator in (full, name) and not one.missing(self.features)
            ]
        return sorted(found, key=_priority)

    def _variant(self, brought: Brought, one: Variant) -> Candidate:
        own = brought.owner == self.origin
        return Candidate(one.kernel, brought.owner, own, one.operator, one)

    def _own(self, name: str, overload: str) -> list[Candidate]:
        found = _name_in(self.own, name, overload)
        return [Candidate(self.own[found], self.origin, True, found)] if found else []

    def _claims(self, name: str, overload: str, preferred: bool) -> list[Candidate]:
        found: list[Candidate] = []
        for brought in self.brought:
            if brought.preferred == preferred:
                given = _name_in(brought.table, name, overload)
                if given:
                    found.append(Candidate(brought.table[given], brought.owner, False, given))
        return found


def _priority(candidate: Candidate) -> int:
    """Sorts the highest priority first."""
    variant = candidate.variant
    return 0 if variant is None else -variant.priority


def _name_in(table: dict[str, Any], name: str, overload: str) -> str:
    """What a table calls an operator: its full name, else its base name; empty for none."""
    if overload:
        full = name + "." + overload
        if full in table:
            return full
    return name if name in table else ""
