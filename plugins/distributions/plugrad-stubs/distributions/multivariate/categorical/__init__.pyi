# For type checkers: `plugrad.distributions.multivariate.categorical`. Written by tools/stubs.py.
from plugrad_distributions.distributions.multivariate.categorical import *
