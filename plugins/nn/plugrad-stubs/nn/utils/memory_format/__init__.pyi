# For type checkers: `plugrad.nn.utils.memory_format`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.memory_format import *
