"""The machinery of the kit: what the test modules beside this folder are made of."""
