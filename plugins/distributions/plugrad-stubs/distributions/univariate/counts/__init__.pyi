# For type checkers: `plugrad.distributions.univariate.counts`. Written by tools/stubs.py.
from plugrad_distributions.distributions.univariate.counts import *
