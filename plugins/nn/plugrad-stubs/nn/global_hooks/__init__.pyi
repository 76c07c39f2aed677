# For type checkers: `plugrad.nn.global_hooks`. Written by tools/stubs.py.
from plugrad_nn.nn.global_hooks import *
