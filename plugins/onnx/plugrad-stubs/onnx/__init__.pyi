# For type checkers: `plugrad.onnx`. Written by tools/stubs.py.
from plugrad_onnx.onnx import *
