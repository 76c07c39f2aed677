# Type checkers look here for `plugrad.nn.modules.rnn`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.rnn import *
