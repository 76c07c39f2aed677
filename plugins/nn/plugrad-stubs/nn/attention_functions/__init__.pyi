# Type checkers look here for `plugrad.nn.attention_functions`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.attention import *
