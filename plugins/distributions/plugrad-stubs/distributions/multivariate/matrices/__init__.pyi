# For type checkers: `plugrad.distributions.multivariate.matrices`. Written by tools/stubs.py.
from plugrad_distributions.distributions.multivariate.matrices import *
