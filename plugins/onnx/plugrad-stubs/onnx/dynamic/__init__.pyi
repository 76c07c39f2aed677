# For type checkers: `plugrad.onnx.dynamic`. Written by tools/stubs.py.
from plugrad_onnx.onnx.dynamic import *
