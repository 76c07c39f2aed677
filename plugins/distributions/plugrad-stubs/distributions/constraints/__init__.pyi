# For type checkers: `plugrad.distributions.constraints`. Written by tools/stubs.py.
from plugrad_distributions.distributions.constraints import *
