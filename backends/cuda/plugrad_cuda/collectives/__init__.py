"""Collectives between GPUs: NCCL, by CuPy, as a carrier of plugrad-distributed. Only that imports
this package."""
