# For type checkers: `plugrad.nn.html`. Written by tools/stubs.py.
from plugrad_nn.nn.html import *
