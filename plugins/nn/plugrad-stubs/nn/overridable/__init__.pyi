# For type checkers: `plugrad.nn.overridable`. Written by tools/stubs.py.
from plugrad_nn.nn.overridable import *
