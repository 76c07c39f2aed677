# For type checkers: `plugrad.onnx.lowerings.elementwise`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.elementwise import *
