# For type checkers: `plugrad.distributions.distribution`. Written by tools/stubs.py.
from plugrad_distributions.distributions.distribution import *
