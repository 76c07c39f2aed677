"""Kernels of an active backend that several packages provide, as `plugrad doctor` lists them."""

from __future__ import annotations

from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.dispatch.backends.candidates import Candidate, plain
from plugrad.dispatch.operator import Operator, all_operators
from plugrad.dispatch.plugin_hooks import maker_of
from plugrad.plugins.config.current import current_config
from plugrad.plugins.kernels.choice import by_owner
from plugrad.plugins.loading.conflicts import Conflict, ConflictingKernel, handle
from plugrad.plugins.loading.plugin import Plugin, preference


def kernels_serving(op: Operator, active: ActiveBackend) -> list[Candidate]:
    """The kernels of an operator on a backend in the order in which they are tried,
    `Library.impl`'s first."""
    key = _dense_key(active)
    registered = op.kernel_for(key)
    found = active.candidates(op.kernel_name, op.overload)
    if op.schema.is_inplace and not active.backend.mutable and op.full_name != "copy_":
        found = []  # a functional kernel, and a new array
    if registered is None:
        return found
    who = maker_of(f"{op.qualified_name} {key.name}")
    return [Candidate(registered, who, False, op.kernel_name), *found]


def kernels_of_others(active: ActiveBackend) -> dict[str, list[str]]:
    """The operators that other packages' kernels compute on a backend, by package."""
    found: dict[str, list[str]] = {}
    for op in all_operators():
        serving = plain(kernels_serving(op, active))
        if serving and not serving[0].own and serving[0].owner:
            names = found.setdefault(serving[0].owner, [])
            if serving[0].name not in names:
                names.append(serving[0].name)
    return found


def kernel_conflicts(
    active: ActiveBackend, plugins: list[Plugin], preferred: tuple[str, ...]
) -> list[Conflict]:
    """Every operator of a backend for which there is more than one kernel, in groups that one
    sentence is true of."""
    groups: dict[tuple[str, ...], list[str]] = {}
    conflicts: dict[str, Conflict] = {}
    owners = by_owner(plugins)
    for op in all_operators():
        used = plain(active.candidates(op.kernel_name, op.overload))
        if used and isinstance(used[0].kernel, ConflictingKernel):
            text = str(used[0].kernel.error)
            conflicts[text] = Conflict(text, settled=False)
            continue
        for sentence, name in _sentences(active, op, used, owners, preferred):
            names = groups.setdefault(sentence, [])
            if name not in names:
                names.append(name)
    settled = [
        Conflict(before + _listed(names) + after, settled=True)
        for (before, after), names in groups.items()
    ]
    return [*conflicts.values(), *settled]


def _sentences(
    active: ActiveBackend,
    op: Operator,
    used: list[Candidate],
    owners: dict[str, Plugin],
    preferred: tuple[str, ...],
) -> list[tuple[tuple[str, str], str]]:
    """The statements about an operator: the sentence around its name, and that."""
    found: list[tuple[tuple[str, str], str]] = []
    claims = active.sources.claims(op.kernel_name, op.overload)
    backend = f"backend {active.name!r}"
    key = _dense_key(active)
    if claims and op.kernel_for(key) is not None:
        who = maker_of(f"{op.qualified_name} {key.name}")
        replaced = _listed_owners(claims)
        after = f" on {backend} by Library.impl, in the place of {replaced}"
        found.append(((f"{who} registers kernels for ", after), op.kernel_name))
        return found
    if not used:
        return found
    first = used[0]
    others = [claim for claim in claims if claim.owner != first.owner]
    if not first.own and others:
        why = _why(active, op, first.owner, owners, preferred)
        after = f" on {backend} are used, not those of {_listed_owners(others)}: {why}"
        found.append(((f"{first.owner}'s kernels for ", after), first.name))
    if first.own:
        chosen = active.sources.chosen_owner(op.kernel_name, op.overload)
        for other in others:
            plugin = owners.get(other.owner)
            called = handle(plugin) if plugin is not None else other.owner
            how = (
                f"which has its own: those are used, unless plugrad.toml says prefer = [{called!r}]"
            )
            if chosen:
                how = f"which has its own: {_why(active, op, first.owner, owners, preferred)}"
            found.append(
                ((f"{other.owner} provides kernels for ", f" on {backend}, {how}"), other.name)
            )
    return found


def _dense_key(active: ActiveBackend) -> keys.DispatchKey:
    """The key of the backend's kernels; by its number, since a name may belong to two of them."""
    return keys.keys_of(active.tensor_keyset & (keys.BACKEND_MASK | keys.DENSE_BIT))[0]


def _why(
    active: ActiveBackend,
    op: Operator,
    owner: str,
    owners: dict[str, Plugin],
    preferred: tuple[str, ...],
) -> str:
    config = current_config()
    if active.sources.chosen_owner(op.kernel_name, op.overload) == owner:
        choices = config.kernels(active.name)
        full = f"{op.kernel_name}.{op.overload}"
        setting = choices.get(full) or choices[op.kernel_name]
        return f"chosen by {setting.source}"
    plugin = owners.get(owner)
    if plugin is not None and preference(plugin, preferred) < len(preferred):
        return f"preferred by {config.all_settings('prefer')[0].source}"
    return "it was there first"


def _listed_owners(claims: list[Candidate]) -> str:
    return " and ".join(dict.fromkeys(claim.owner for claim in claims))


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names)
