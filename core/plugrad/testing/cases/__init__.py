"""Test cases of operators: descriptions of calls, and the tables of plugrad's operators.

A case describes arguments of a function and makes no tensor. Tests make what they need from it:
values on a backend and on the CPU, derivatives, other memory layouts. Cases of the operators of a
plugin come by the hook `plugrad_cases`, and get the same treatment.
"""

from __future__ import annotations

from plugrad.plugins.cases import (
    ALL_DTYPES,
    COMPLEX,
    FLOATS,
    INTEGERS,
    D,
    OpCase,
    OpError,
    OpSample,
    T,
)
from plugrad.testing.cases.arguments import Arguments, flatten, lay_out, resolve, seed_of
from plugrad.testing.cases.inputs import call, calls, fails, wrong
from plugrad.testing.cases.registry import (
    FAMILIES,
    all_cases,
    cases_of,
    core_cases,
    family_cases,
    plugin_cases,
    register,
)

__all__ = [
    "ALL_DTYPES", "COMPLEX", "FAMILIES", "FLOATS", "INTEGERS", "Arguments", "D", "OpCase",
    "OpError", "OpSample", "T", "all_cases", "call", "calls", "cases_of", "core_cases", "fails",
    "family_cases", "flatten", "lay_out", "plugin_cases", "register", "resolve", "seed_of", "wrong",
]  # fmt: skip
