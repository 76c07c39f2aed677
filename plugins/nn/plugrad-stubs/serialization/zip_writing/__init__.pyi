# For type checkers: `plugrad.serialization.zip_writing`. Written by tools/stubs.py.
from plugrad_nn.serialization.zip_writing import *
