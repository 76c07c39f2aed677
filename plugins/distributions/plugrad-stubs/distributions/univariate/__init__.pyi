# For type checkers: `plugrad.distributions.univariate`. Written by tools/stubs.py.
from plugrad_distributions.distributions.univariate import *
