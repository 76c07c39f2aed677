# For type checkers: `plugrad.hub.repositories`. Written by tools/stubs.py.
from plugrad_nn.hub.repositories import *
