# For type checkers: `plugrad.nn.modules.margin_loss`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.margin_loss import *
