# For type checkers: `plugrad.utils.data.graph_settings`. Written by tools/stubs.py.
from plugrad_nn.utils.data.graph_settings import *
