"""`plugrad demo`: trains a classifier of handwritten digits and shows what came of it."""
