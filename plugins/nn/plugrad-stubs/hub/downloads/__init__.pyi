# For type checkers: `plugrad.hub.downloads`. Written by tools/stubs.py.
from plugrad_nn.hub.downloads import *
