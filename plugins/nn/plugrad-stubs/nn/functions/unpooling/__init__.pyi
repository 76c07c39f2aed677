# For type checkers: `plugrad.nn.functions.unpooling`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.unpooling import *
