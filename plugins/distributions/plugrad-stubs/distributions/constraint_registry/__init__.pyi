# For type checkers: `plugrad.distributions.constraint_registry`. Written by tools/stubs.py.
from plugrad_distributions.distributions.constraint_registry import *
