"""Measurements of several processes, each started by itself: they are no part of `make bench`."""
