# For type checkers: `plugrad.nn.modules.lazy`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.lazy import *
