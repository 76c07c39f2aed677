"""Factorizations of matrices in NumPy that neither NumPy nor most array libraries have."""

from plugrad.ops.on_demand.factorizations.ldl import ldl_factor, ldl_solve

__all__ = ["ldl_factor", "ldl_solve"]
