"""`plugrad.viewer`: draws autograd graphs, and records runs so that a page can replay them."""
