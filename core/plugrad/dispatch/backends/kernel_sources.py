"""Whose kernels a backend computes with: its own and those that others bring, by operator.

Each operator has a list of candidates, which is settled once: the kernel that the configuration
chooses, those of preferred packages, the backend's own, and where it has none what another package
brings. A candidate that returns `NotImplemented` declines, and the next one runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, final

from plugrad.dispatch.local_state import current_state

# What a kernel returns that leaves a call to the next one.
DECLINED: Final[Any] = NotImplemented


@final
class Brought:
    """Kernels for a backend that somebody else brings.

    Attributes:
        owner: who brings them: a distribution with its version.
        table: the kernels, by operator's name.
        preferred: whether they count before the backend's own.
    """

    def __init__(self, owner: str, table: Mapping[str, Any], preferred: bool = False) -> None:
        self.owner = owner
        self.table: dict[str, Any] = dict(table)
        self.preferred = preferred

    def equals(self, other: Brought) -> bool:
        """Whether both are the same kernels of the same owner, with the same rank."""
        same = self.owner == other.owner and self.preferred == other.preferred
        return same and self.table == other.table


@final
class Candidate:
    """A kernel on arrays that can serve an operator.

    Attributes:
        owner: whose it is.
        own: whether that is the backend itself.
        name: what its owner calls it: the operator's name, with or without overload.
    """

    def __init__(self, kernel: Any, owner: str, own: bool, name: str) -> None:
        self.kernel: Any = kernel
        self.owner = owner
        self.own = own
        self.name = name


@final
class Candidates:
    """The kernels of one operator as one: the first that does not decline computes.

    Attributes:
        ran: the one that computed last, for messages; other threads may have changed it.
    """

    def __init__(self, operator: str, found: list[Candidate]) -> None:
        self.operator = operator
        self.found = found
        self.ran = found[0]

    def __call__(self, *args: Any) -> Any:
        for candidate in self.found:
            out = candidate.kernel(*args)
            if out is not DECLINED:
                self.ran = candidate
                return out
            note_declined(self.operator, candidate.owner)
        return DECLINED


def note_declined(operator: str, owner: str) -> None:
    """Tell who listens to the thread's work that a kernel has left a call to the next one."""
    trace = current_state().trace
    if trace is not None:
        trace.decline(operator, owner)


@final
class KernelSources:
    """The kernels that there are for one backend, and which of them are used.

    Attributes:
        own: the backend's own kernels.
        origin: whose those are.
        brought: what others bring, those that are preferred in their order.
        chosen: by operator's name, with or without overload, the owner whose kernel comes first.
        conflict: what stands for a kernel that several others bring; called with the operator's
            name and the owners.
    """

    def __init__(self, own: dict[str, Any], origin: str) -> None:
        self.own = own
        self.origin = origin
        self.brought: list[Brought] = []
        self.chosen: dict[str, str] = {}
        self.conflict: Callable[[str, list[str]], Any] | None = None
        self._raw: dict[str, Any] = {}

    def settle(
        self,
        brought: list[Brought],
        chosen: dict[str, str],
        conflict: Callable[[str, list[str]], Any] | None,
    ) -> bool:
        """Take what others bring now, in the place of what they brought before; whether anything
        is new."""
        same = chosen == self.chosen and len(brought) == len(self.brought)
        if same and all(a.equals(b) for a, b in zip(brought, self.brought, strict=True)):
            return False
        self.brought = brought
        self.chosen = chosen
        self.conflict = conflict
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
        if len(found) == 1:
            raw = found[0].kernel
        elif found:
            raw = Candidates(full if "::" in full else f"plugrad::{full}", found)
        known[full] = raw
        return raw

    def candidates(self, name: str, overload: str) -> list[Candidate]:
        """The kernels that serve an operator, in the order in which they are asked."""
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
        first = [each for each in [*found, *others] if owner and each.owner == owner][:1]
        if not first:
            return found
        return [*first, *[each for each in found if each.owner and each.owner != owner]]

    def claims(self, name: str, overload: str) -> list[Candidate]:
        """Every kernel that there is for an operator, whether it is used or not."""
        own = self._own(name, overload)
        return [*self._claims(name, overload, True), *own, *self._claims(name, overload, False)]

    def chosen_owner(self, name: str, overload: str) -> str:
        """Whose kernel the configuration wants for an operator; empty if it says nothing."""
        if not self.chosen:
            return ""
        return self.chosen.get(f"{name}.{overload}") or self.chosen.get(name) or ""

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


def _name_in(table: dict[str, Any], name: str, overload: str) -> str:
    """What a table calls an operator: its full name, else its base name; empty for none."""
    if overload:
        full = name + "." + overload
        if full in table:
            return full
    return name if name in table else ""
