"""Spectra of pieces of a signal, and the windows that cut them out."""
