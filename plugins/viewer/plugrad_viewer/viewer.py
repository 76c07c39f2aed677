"""`plugrad.viewer`: draws autograd graphs, and records runs so that a page can replay them."""

from plugrad_viewer.drawing.draw import Drawing, draw
from plugrad_viewer.recording.recording import Recording, record

__all__ = ["Drawing", "Recording", "draw", "record"]
