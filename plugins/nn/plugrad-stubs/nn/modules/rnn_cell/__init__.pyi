# For type checkers: `plugrad.nn.modules.rnn_cell`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.rnn_cell import *
