# For type checkers: `plugrad.distributions.transforms.base`. Written by tools/stubs.py.
from plugrad_distributions.distributions.transforms.base import *
