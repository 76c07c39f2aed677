# For type checkers: `plugrad.onnx.lowerings.shape`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.shape import *
