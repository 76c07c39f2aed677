# For type checkers: `plugrad.distributions`. Written by tools/stubs.py.
from plugrad_distributions.distributions import *
