# For type checkers: `plugrad.nn.modules.older_names`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.older_names import *
