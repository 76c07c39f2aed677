# For type checkers: `plugrad.onnx.lowerings.activation`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.activation import *
