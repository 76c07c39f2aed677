# For type checkers: `plugrad.nn.modules.dropout`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.dropout import *
