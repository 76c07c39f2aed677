"""The hooks of this plugin, which the entry point `plugrad: special` names."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from plugrad.plugins import hookimpl
from plugrad_special.formulas import (
    bessel,
    elementary,
    elliptic,
    error,
    gamma,
    integrals,
    polynomials,
    quotients,
)

plugrad_api_version = (1, 0)

OPS = Path(__file__).parent / "ops"

# In this order: expressions use operators of their own file and of those before.
FAMILIES: dict[str, list[ModuleType]] = {
    "hypergeometric": [],
    "elementary": [elementary, quotients],
    "gamma": [gamma],
    "error": [error],
    "integrals": [integrals, bessel, quotients],
    "bessel": [bessel, quotients],
    "elliptic": [elliptic],
    "polynomials": [polynomials],
}


@hookimpl
def plugrad_ops() -> list[tuple[Path, list[ModuleType]]]:
    """The YAML files, each with the modules that define the functions named in its entries."""
    return [(OPS / f"{family}.yaml", modules) for family, modules in FAMILIES.items()]


@hookimpl
def plugrad_namespaces() -> dict[str, str]:
    return {
        "special": "plugrad_special.special",
        "quasirandom": "plugrad_special.quasirandom",
    }


@hookimpl
def plugrad_kernels() -> dict[str, str]:
    """The modules of the kernels, by backend; each is imported when its backend becomes active."""
    return {
        "cpu": "plugrad_special.kernels.cpu:KERNELS",
        "cuda": "plugrad_special.kernels.cuda:KERNELS",
        "jax": "plugrad_special.kernels.jax:KERNELS",
    }


@hookimpl
def plugrad_cases() -> list[str]:
    return ["plugrad_special.cases:CASES"]
