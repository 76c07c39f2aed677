# For type checkers: `plugrad.distributions.univariate.location_scale`. Written by tools/stubs.py.
from plugrad_distributions.distributions.univariate.location_scale import *
