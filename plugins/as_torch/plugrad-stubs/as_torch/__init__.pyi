# For type checkers: `plugrad.as_torch`. Written by tools/stubs.py.
from plugrad_as_torch.as_torch import *
