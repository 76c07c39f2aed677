# For type checkers: `plugrad.utils.checkpoint`. Written by tools/stubs.py.
from plugrad_nn.utils.checkpoint import *
