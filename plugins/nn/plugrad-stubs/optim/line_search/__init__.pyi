# For type checkers: `plugrad.optim.line_search`. Written by tools/stubs.py.
from plugrad_nn.optim.line_search import *
