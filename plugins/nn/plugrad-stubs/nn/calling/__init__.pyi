# For type checkers: `plugrad.nn.calling`. Written by tools/stubs.py.
from plugrad_nn.nn.calling import *
