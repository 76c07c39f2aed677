# For type checkers: `plugrad.onnx.exporting`. Written by tools/stubs.py.
from plugrad_onnx.onnx.exporting import *
