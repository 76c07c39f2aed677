"""Measurements with several processes, each started separately: they are not part of
`make bench`."""
