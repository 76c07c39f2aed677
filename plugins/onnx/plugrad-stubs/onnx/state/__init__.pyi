# For type checkers: `plugrad.onnx.state`. Written by tools/stubs.py.
from plugrad_onnx.onnx.state import *
