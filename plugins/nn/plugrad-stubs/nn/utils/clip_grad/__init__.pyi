# For type checkers: `plugrad.nn.utils.clip_grad`. Written by tools/stubs.py.
from plugrad_nn.nn.utils.clip_grad import *
