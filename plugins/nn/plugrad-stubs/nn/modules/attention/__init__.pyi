# For type checkers: `plugrad.nn.modules.attention`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.attention import *
