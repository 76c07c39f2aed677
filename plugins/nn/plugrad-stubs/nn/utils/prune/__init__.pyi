# For type checkers: `plugrad.nn.utils.prune`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.prune import *
