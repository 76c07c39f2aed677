# For type checkers: `plugrad.optim.swa_utils`. Written by tools/stubs.py.
from plugrad_nn.optim.swa_utils import *
