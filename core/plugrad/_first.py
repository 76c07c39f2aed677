"""Imports most of the package, in an order that matters, while the garbage collector is off.

None of it is garbage, and looking for some takes an eighth of the time.
"""

from __future__ import annotations

# Interpreted: it only imports.
import gc

_collects = gc.isenabled()
gc.disable()
try:
    # isort: off
    from plugrad import _interpreters as _interpreters  # raises in a sub-interpreter
    from plugrad import _library as _library  # finds the compiled modules
    from plugrad import graph as graph  # before the layers that build on it
    from plugrad import levels as levels  # installs the kernels of its key
    from plugrad._tensor import classes as classes
    from plugrad import autograd as autograd
    from plugrad import plugins as plugins
    from plugrad.transforms import compile as compile
    # isort: on
finally:
    if gc.get_freeze_count() == 0:
        # Everything moves to the oldest generation, unseen. The next allocation would look through
        # all that is new: 5 ms.
        gc.freeze()
        gc.unfreeze()
    if _collects:
        gc.enable()
