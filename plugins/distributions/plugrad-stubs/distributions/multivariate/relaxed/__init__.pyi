# For type checkers: `plugrad.distributions.multivariate.relaxed`. Written by tools/stubs.py.
from plugrad_distributions.distributions.multivariate.relaxed import *
