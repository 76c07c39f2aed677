# For type checkers: `plugrad.nn.utils.hooked_norms`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.hooked_norms import *
