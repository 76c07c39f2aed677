# For type checkers: `plugrad.nn.functions.channel`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.channel import *
