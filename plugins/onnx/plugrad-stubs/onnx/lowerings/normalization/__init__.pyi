# For type checkers: `plugrad.onnx.lowerings.normalization`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.normalization import *
