# For type checkers: `plugrad.nn.functions.adaptive`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.adaptive import *
