# For type checkers: `plugrad.nn.utils.rnn`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.rnn import *
