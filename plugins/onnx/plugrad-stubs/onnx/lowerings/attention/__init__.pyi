# For type checkers: `plugrad.onnx.lowerings.attention`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.attention import *
