# For type checkers: `plugrad.utils.tensorboard`. Written by tools/stubs.py.
from plugrad_nn.utils.tensorboard import *
