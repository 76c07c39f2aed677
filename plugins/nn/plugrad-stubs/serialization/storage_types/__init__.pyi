# For type checkers: `plugrad.serialization.storage_types`. Written by tools/stubs.py.
from plugrad_nn.serialization.storage_types import *
