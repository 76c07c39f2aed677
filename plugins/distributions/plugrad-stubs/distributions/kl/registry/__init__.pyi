# For type checkers: `plugrad.distributions.kl.registry`. Written by tools/stubs.py.
from plugrad_distributions.distributions.kl.registry import *
