"""Imports most of the package, in the required order, with the garbage collector off.

Importing leaves no garbage, and searching for it would take a tenth of the time.
"""

from __future__ import annotations

# Interpreted: it only imports.
import gc

_collects = gc.isenabled()
gc.disable()
try:
    # isort: off
    from plugrad import graph as graph  # before the layers that build on it
    from plugrad import levels as levels  # installs the kernels of its key
    from plugrad._tensor import classes as classes
    from plugrad import autograd as autograd
    from plugrad import plugins as plugins
    from plugrad.transforms import compile as compile
    # isort: on
finally:
    if _collects:
        gc.enable()
