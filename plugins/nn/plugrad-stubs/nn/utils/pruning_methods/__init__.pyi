# For type checkers: `plugrad.nn.utils.pruning_methods`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.pruning_methods import *
