# For type checkers: `plugrad.onnx.lowerings.creation`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.creation import *
