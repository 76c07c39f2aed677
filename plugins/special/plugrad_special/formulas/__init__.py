"""What the YAML entries name: derivatives that take more than an expression, decompositions, checks."""
