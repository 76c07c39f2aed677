"""Backends as dispatch sees them: the contract, which are active, and their kernels."""
