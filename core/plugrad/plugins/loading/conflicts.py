"""Conflicts: settles what happens when two plugins claim the same thing, with the messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from plugrad.errors import PluginConflictError
from plugrad.plugins.loading.plugin import Plugin, preference
from plugrad.plugins.loading.published import PUBLISHED

# How a conflict is settled, in the words of every message.
HOW_TO_SETTLE: Final = (
    "uninstall one of them, or in plugrad.toml say disable = [{one!r}] or prefer = [{other!r}]"
)


def conflict(what: str, plugins: Iterable[Plugin]) -> PluginConflictError:
    """The error about something that several plugins provide."""
    first, *others = plugins
    names = [plugin.origin for plugin in (first, *others)]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    how = HOW_TO_SETTLE.format(one=handle(others[-1]), other=handle(first))
    return PluginConflictError(
        f"{listed} {'both' if not others[1:] else 'all'} provide {what}: {how}"
    )


def handle(plugin: Plugin) -> str:
    """What the configuration calls a plugin, without doubt."""
    return plugin.distribution or plugin.name


def settle_names(plugins: list[Plugin], preferred: tuple[str, ...]) -> None:
    """If several plugins have one name, the preferred one is used; without a preference none is."""
    for plugin in plugins:
        plugin.set_aside = None
    by_name: dict[str, list[Plugin]] = {}
    for plugin in plugins:
        if not plugin.disabled:
            by_name.setdefault(plugin.name, []).append(plugin)
    for name, rivals in by_name.items():
        if len(rivals) == 1:
            continue
        # The name alone prefers none of them: they all have it.
        by_distribution = tuple(one for one in preferred if one != name)
        ranks = [preference(plugin, by_distribution) for plugin in rivals]
        best = min(ranks)
        if best < len(by_distribution) and ranks.count(best) == 1:
            winner = rivals[ranks.index(best)]
            for plugin in rivals:
                if plugin is not winner:
                    plugin.set_aside = PluginConflictError(
                        f"{winner.origin} has a plugin of the same name, {name!r}, and is preferred"
                    )
        else:
            error = conflict(f"a plugin named {name!r}", rivals)
            for plugin in rivals:
                plugin.set_aside = error


@dataclass(frozen=True)
class Conflict:
    """Something that several plugins claim.

    Attributes:
        text: the claims, and how the conflict is settled or can be.
        settled: whether a rule or the configuration decides; otherwise asking for it raises.
    """

    text: str
    settled: bool


def claims_of_several(plugins: list[Plugin], preferred: tuple[str, ...]) -> list[Conflict]:
    """The backends, names under plugrad and dispatch keys that several usable plugins claim."""
    found: list[Conflict] = []
    for kind, attribute in (("backend {!r}", "backends"), ("plugrad.{}", "namespaces")):
        claims: dict[str, list[Plugin]] = {}
        for plugin in plugins:
            for name in getattr(plugin, attribute):
                claims.setdefault(name, []).append(plugin)
        for name, rivals in sorted(claims.items()):
            if len(rivals) > 1:
                found.append(_judged(kind.format(name), name, rivals, preferred))
    by_key: dict[str, dict[str, Plugin]] = {}
    for plugin in plugins:
        for backend in plugin.backends.values():
            key = backend.key_name or backend.name.capitalize()
            by_key.setdefault(key, {}).setdefault(backend.name, plugin)
    found += [
        Conflict(str(conflict(f"the dispatch key {key!r}", owners.values())), settled=False)
        for key, owners in sorted(by_key.items())
        if len(owners) > 1
    ]
    return found


def _judged(what: str, name: str, rivals: list[Plugin], preferred: tuple[str, ...]) -> Conflict:
    ranks = [preference(plugin, preferred) for plugin in rivals]
    winner, why = rivals[ranks.index(min(ranks))], "is preferred"
    if min(ranks) == len(preferred):
        namesakes = [plugin for plugin in rivals if plugin.name == PUBLISHED.get(name, name)]
        if not namesakes:
            return Conflict(str(conflict(what, rivals)), settled=False)
        winner, why = namesakes[0], "has that name"
    names = ", ".join(plugin.origin for plugin in rivals if plugin is not winner)
    return Conflict(
        f"{what} of {winner.origin} is used, which {why}, and not that of {names}", True
    )


class ConflictingKernel:
    """Replaces a kernel that two plugins provide; raises when it is called."""

    def __init__(self, error: PluginConflictError) -> None:
        self.error = error

    def __call__(self, *args: Any) -> Any:
        raise self.error
