# Type checkers look here for `plugrad.nn.margin_loss_functions`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.margin_loss import *
