# For type checkers: `plugrad.onnx.program`. Written by tools/stubs.py.
from plugrad_onnx.onnx.program import *
