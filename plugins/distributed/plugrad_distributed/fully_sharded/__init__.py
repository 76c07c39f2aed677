"""Fully sharded training: each rank keeps a part of each parameter, and gathers the whole for use."""
