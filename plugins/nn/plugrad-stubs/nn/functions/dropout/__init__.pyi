# For type checkers: `plugrad.nn.functions.dropout`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.dropout import *
