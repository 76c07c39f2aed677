# For type checkers: `plugrad.nn.utils.members`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.members import *
