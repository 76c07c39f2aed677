# For type checkers: `plugrad.hub.entry_points`. Written by tools/stubs.py.
from plugrad_nn.hub.entry_points import *
