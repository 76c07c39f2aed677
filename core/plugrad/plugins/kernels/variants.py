"""Variants of kernels that plugins provide, and the hardware features that they may use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.dispatch.backends.candidates import Candidate
from plugrad.dispatch.backends.variants import Variant, checked_variants, nearest
from plugrad.plugins.config.current import current_config
from plugrad.plugins.config.keys import ConfigError
from plugrad.plugins.kernels.sources import resolved
from plugrad.plugins.loading.load import FAILURES
from plugrad.plugins.loading.plugin import Plugin
from plugrad.plugins.loading.registrations import made_by

CAPABILITY: Final = "cpu_capability"


def usable_features(active: ActiveBackend, strict: bool) -> dict[str, bool]:
    """The hardware features that variants may use on a backend, as restricted by the configuration.

    Args:
        strict: whether an unknown capability raises; otherwise it restricts nothing.

    Raises:
        ConfigError: the capability is unknown.
        TypeError: the backend gives no mapping.
    """
    setting = current_config().all_settings(CAPABILITY)[0]
    try:
        found: object = active.backend.features(str(setting.value))
    except ValueError as error:
        if strict:
            raise ConfigError(f"{setting.source}: {error}") from error
        found = active.backend.features("")
    if not isinstance(found, Mapping):
        raise TypeError(
            f"features() of backend {active.name!r} must return a mapping from names to whether "
            f"kernels may use them, got {type(found).__name__}"
        )
    return {str(name): bool(usable) for name, usable in found.items()}


def make_variants(plugin: Plugin, active: ActiveBackend, features: Mapping[str, bool]) -> list[str]:
    """Collect a plugin's variants for a backend in one list; an error is recorded.

    Variants for operators that do not exist and variants that need features unknown to the backend
    are left out. Returns the warnings to give, once.
    """
    name = active.name
    if name in plugin.variant_lists or name in plugin.variant_errors:
        return []
    given: list[Variant] = []
    try:
        with made_by(plugin):
            for source in plugin.variants[name]:
                made = resolved(source)
                given += checked_variants(made() if callable(made) else made)
            given = checked_variants(given)
    except FAILURES as error:
        plugin.variant_errors[name] = error
        return [
            f"the variants of {plugin.origin} for backend {name!r} cannot be used: "
            f"{type(error).__name__}: {error}"
        ]
    kept: list[Variant] = []
    told: list[str] = []
    for one in given:
        wrong = _wrong(one, active, features)
        if wrong:
            text = f"{plugin.origin} has, for backend {name!r}, {wrong}"
            plugin.unknown_kernels.setdefault(name, []).append(text)
            told.append(f"{text} (it is left out)")
        else:
            kept.append(one)
    plugin.variant_lists[name] = kept
    return told


def _wrong(one: Variant, active: ActiveBackend, features: Mapping[str, bool]) -> str:
    for what in active.unknown_names({one.operator: None}).values():
        return what.replace("a kernel for", f"a variant {one.name!r} for", 1)
    for feature in one.features:
        if feature not in features:
            return (
                f"a variant {one.name!r} for {one.operator!r} that needs {feature!r}, which is "
                f"unknown to the backend; {nearest(feature, features)}"
            )
    return ""


def report_variants(active: ActiveBackend) -> list[dict[str, object]]:
    """The variants of kernels on a backend and why they are not used, as `doctor` shows them: one
    row for each owner, name and requirement."""
    rows: dict[tuple[str, ...], list[str]] = {}
    problems: dict[int, str] = {}  # several variants share what says it
    for candidate in active.sources.all_variants():
        one = candidate.variant
        if one is None:
            continue
        problem = _lacking(one, active)
        if not problem and one.problem is not None:
            if id(one.problem) not in problems:
                problems[id(one.problem)] = one.problem()
            problem = problems[id(one.problem)]
        key = (candidate.owner, one.name, ", ".join(one.features), problem)
        rows.setdefault(key, []).append(one.operator)
    return [
        {
            "backend": active.name,
            "owner": owner,
            "name": name,
            "operators": operators,
            "needs": needs,
            "problem": problem,
        }
        for (owner, name, needs, problem), operators in rows.items()
    ]


def unused_variants(active: ActiveBackend, names: Collection[str]) -> list[tuple[Candidate, str]]:
    """The variants of an operator's kernel that are not used here, each with the reason.

    Args:
        names: what variants may call the operator: with and without its overload.
    """
    found = []
    for candidate in active.sources.all_variants():
        one = candidate.variant
        if one is not None and one.operator in names:
            problem = _lacking(one, active)
            if not problem and one.problem is not None:
                problem = one.problem()
            if problem:
                found.append((candidate, problem))
    return found


def _lacking(one: Variant, active: ActiveBackend) -> str:
    """Why the hardware, or the configuration, rules a variant out; empty if they do not."""
    missing = one.missing(active.sources.features)
    if not missing:
        return ""
    restricted = not one.missing(active.backend.features(""))
    if restricted:
        capability = current_config().all_settings(CAPABILITY)[0]
        return f"it needs {', '.join(missing)}, which {capability.source} rules out"
    return f"it needs {', '.join(missing)}, which is not here"
