"""Fully sharded training: ranks keep parts of parameters, and gather the wholes for use."""
