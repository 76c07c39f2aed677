# For type checkers: `plugrad.distributions.kl`. Written by tools/stubs.py.
from plugrad_distributions.distributions.kl import *
