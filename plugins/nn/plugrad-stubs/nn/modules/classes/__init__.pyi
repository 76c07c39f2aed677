# For type checkers: `plugrad.nn.modules.classes`. Written by tools/stubs.py.
from plugrad_nn.nn.modules.classes import *
