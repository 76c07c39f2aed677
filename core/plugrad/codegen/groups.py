"""Overloads that share a Python name, and how their public function chooses among them."""

from __future__ import annotations

from dataclasses import dataclass

from plugrad.codegen.model import Entry, EntryError


@dataclass(frozen=True)
class Group:
    """All operators of one Python name.

    Attributes:
        kind: "single"; "scalar_or_tensor" if two overloads differ in one argument that is a Scalar
            in one and a Tensor in the other; "overloaded" otherwise.
        position: of that argument.
    """

    name: str
    entries: tuple[Entry, ...]
    kind: str
    position: int = -1

    @property
    def first(self) -> Entry:
        return self.entries[0]

    def by_type(self, base: str) -> Entry:
        """The overload with this type for the argument that differs."""
        return next(
            entry
            for entry in self.entries
            if entry.schema.arguments[self.position].type.base == base
        )


def group_entries(entries: list[Entry]) -> list[Group]:
    """Group by Python name; EntryError if one name appears in two families."""
    by_name: dict[str, list[Entry]] = {}
    for entry in entries:
        by_name.setdefault(entry.python_name, []).append(entry)
    groups: list[Group] = []
    for name, found in by_name.items():
        families = {entry.family for entry in found}
        if len(families) > 1:
            raise EntryError(f"the overloads of {name!r} must be in one file, found: {families}")
        seen = {entry.schema.full_name for entry in found}
        if len(seen) != len(found):
            raise EntryError(f"{found[0].family}.yaml: {name!r} has the same overload twice")
        groups.append(_classify(name, found))
    return groups


def _classify(name: str, entries: list[Entry]) -> Group:
    if len(entries) == 1:
        return Group(name, tuple(entries), "single")
    if len(entries) == 2:
        a, b = (entry.schema.arguments for entry in entries)
        if [x.name for x in a] == [x.name for x in b]:
            differing = [i for i in range(len(a)) if str(a[i]) != str(b[i])]
            bases = {(str(a[i].type), str(b[i].type)) for i in differing}
            if len(differing) == 1 and bases <= {("Tensor", "Scalar"), ("Scalar", "Tensor")}:
                return Group(name, tuple(entries), "scalar_or_tensor", differing[0])
    return Group(name, tuple(entries), "overloaded")
