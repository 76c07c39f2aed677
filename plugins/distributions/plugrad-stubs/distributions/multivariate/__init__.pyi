# For type checkers: `plugrad.distributions.multivariate`. Written by tools/stubs.py.
from plugrad_distributions.distributions.multivariate import *
