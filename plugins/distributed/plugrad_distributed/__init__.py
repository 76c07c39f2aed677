"""Collectives and data parallel training: the distribution behind `plugrad.distributed`."""
