# For type checkers: `plugrad.nn.conv`. Written by tools/stubs.py.
from plugrad_nn.nn.conv import *
