# For type checkers: `plugrad.distributions.univariate.circular`. Written by tools/stubs.py.
from plugrad_distributions.distributions.univariate.circular import *
