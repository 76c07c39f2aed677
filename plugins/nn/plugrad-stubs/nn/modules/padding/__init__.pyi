# For type checkers: `plugrad.nn.modules.padding`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.padding import *
