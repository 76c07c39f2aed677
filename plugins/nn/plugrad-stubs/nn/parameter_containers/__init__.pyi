# For type checkers: `plugrad.nn.parameter_containers`. Written by tools/stubs.py.
from plugrad_nn.nn.parameter_containers import *
