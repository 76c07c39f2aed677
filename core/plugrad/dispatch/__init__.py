"""Dispatch: keys, operators, kernels, and the calls between them."""

from __future__ import annotations

from plugrad.dispatch import fork  # registers its handlers for forks
from plugrad.dispatch.keys import DispatchKey, KeySet, all_keys, dispatch_key, dispatch_keys
from plugrad.dispatch.operator import Operator, all_operators, declared_operators, find_operator
from plugrad.dispatch.schema import FunctionSchema, SchemaError, parse_schema
from plugrad.dispatch.scope import ExcludeKeys, IncludeKeys
from plugrad.dispatch.trace import TraceEvent, record_dispatch_trace, show_dispatch_trace

__all__ = [
    "DispatchKey",
    "ExcludeKeys",
    "FunctionSchema",
    "IncludeKeys",
    "KeySet",
    "Operator",
    "SchemaError",
    "TraceEvent",
    "all_keys",
    "all_operators",
    "declared_operators",
    "dispatch_key",
    "dispatch_keys",
    "find_operator",
    "fork",
    "parse_schema",
    "record_dispatch_trace",
    "show_dispatch_trace",
]
