# For type checkers: `plugrad.onnx.layers`. Written by tools/stubs.py.
from plugrad_onnx.onnx.layers import *
