# For type checkers: `plugrad.onnx.recording`. Written by tools/stubs.py.
from plugrad_onnx.onnx.recording import *
