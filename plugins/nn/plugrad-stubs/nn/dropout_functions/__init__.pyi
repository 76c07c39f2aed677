# Type checkers look here for `plugrad.nn.dropout_functions`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.dropout import *
