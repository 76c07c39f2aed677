# For type checkers: `plugrad.utils.module_tracker`. Written by tools/stubs.py.
from plugrad_nn.utils.module_tracker import *
