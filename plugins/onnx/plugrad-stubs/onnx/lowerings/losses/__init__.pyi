# For type checkers: `plugrad.onnx.lowerings.losses`. Written by tools/stubs.py.
from plugrad_onnx.onnx.lowerings.losses import *
