"""Collectives between GPUs: NCCL, through CuPy, as a carrier of plugrad-distributed. Only
plugrad-distributed imports this package."""
