# For type checkers: `plugrad.onnx.alignment`. Written by tools/stubs.py.
from plugrad_onnx.onnx.alignment import *
