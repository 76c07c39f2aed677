# For type checkers: `plugrad.onnx.translation`. Written by tools/stubs.py.
from plugrad_onnx.onnx.translation import *
