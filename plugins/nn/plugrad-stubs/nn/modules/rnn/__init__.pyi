# For type checkers: `plugrad.nn.modules.rnn`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.rnn import *
