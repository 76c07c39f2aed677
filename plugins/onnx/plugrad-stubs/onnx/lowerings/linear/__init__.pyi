# For type checkers: `plugrad.onnx.lowerings.linear`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.linear import *
