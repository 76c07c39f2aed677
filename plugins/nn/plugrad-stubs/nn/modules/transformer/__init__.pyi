# For type checkers: `plugrad.nn.modules.transformer`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.transformer import *
