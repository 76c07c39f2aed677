# For type checkers: `plugrad.onnx.errors`. Written by tools/stubs.py.
from plugrad_onnx.onnx.errors import *
