# For type checkers: `plugrad.serialization.safetensors_files`. Written by tools/stubs.py.
from plugrad_nn.serialization.safetensors_files import *
