"""Imports most of the package, in the order that counts, while the garbage collector rests.

Nothing of it is garbage, and looking for some takes a tenth of the time.
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
