"""`plugrad demo`: trains a classifier of handwritten digits and shows the results."""
