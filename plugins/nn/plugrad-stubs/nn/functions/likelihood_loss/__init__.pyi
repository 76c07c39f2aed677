# For type checkers: `plugrad.nn.functions.likelihood_loss`. Written by tools/stubs.py.
from plugrad_nn.nn.functions.likelihood_loss import *
