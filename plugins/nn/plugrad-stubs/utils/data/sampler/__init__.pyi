# For type checkers: `plugrad.utils.data.sampler`. Written by tools/stubs.py.
from plugrad_nn.utils.data.sampler import *
