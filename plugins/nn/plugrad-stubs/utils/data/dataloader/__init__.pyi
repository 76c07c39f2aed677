# For type checkers: `plugrad.utils.data.dataloader`. Written by tools/stubs.py.
from plugrad_nn.utils.data.dataloader import *
