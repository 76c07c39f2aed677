# For type checkers: `plugrad.optim.muon`. Written by tools/stubs.py.
from plugrad_nn.optim.muon import *
