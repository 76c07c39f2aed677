"""Fully sharded training: ranks keep parts of parameters, and gather whole parameters for use."""
