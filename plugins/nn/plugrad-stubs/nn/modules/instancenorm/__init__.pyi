# For type checkers: `plugrad.nn.modules.instancenorm`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.instancenorm import *
