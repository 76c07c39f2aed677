# For type checkers: `plugrad.nn.modules.conv_transpose`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.conv_transpose import *
