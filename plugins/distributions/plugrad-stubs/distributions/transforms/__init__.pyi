# For type checkers: `plugrad.distributions.transforms`. Written by tools/stubs.py.
from plugrad_distributions.distributions.transforms import *
