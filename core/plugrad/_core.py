"""The core's modules, imported without a look at what may be garbage: an import makes none, and the
collector would take a tenth of its time.
"""

from __future__ import annotations

# Interpreted: it only imports.
import gc

from plugrad import _interpreters as _interpreters  # raises in a sub-interpreter

_collects = gc.isenabled()
gc.disable()
try:
    from plugrad import graph as graph  # before the layers that build on it

    # isort: split
    from plugrad import levels as levels  # installs the kernels of its key
    from plugrad._generated import functions as functions
    from plugrad._tensor import classes as classes
finally:
    if _collects:
        gc.enable()
