# For type checkers: `plugrad.onnx.sizes`. Written by tools/stubs.py.
from plugrad_onnx.onnx.sizes import *
