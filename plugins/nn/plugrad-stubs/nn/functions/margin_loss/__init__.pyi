# For type checkers: `plugrad.nn.functions.margin_loss`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.margin_loss import *
