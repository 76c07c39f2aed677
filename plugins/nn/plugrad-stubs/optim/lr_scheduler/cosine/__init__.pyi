# For type checkers: `plugrad.optim.lr_scheduler.cosine`. Written by tools/stubs.py.
from plugrad_nn.optim.lr_scheduler.cosine import *
