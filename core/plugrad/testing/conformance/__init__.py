"""The conformance kit: some thousands of generated tests that a backend or an operator passes.

    pytest --pyargs plugrad.testing.conformance --plugrad-backend=foo
    pytest --plugrad-op=special::erfcx

It is a set of pytest modules, one for each topic, and the certificate that they end with. What it
compares with is the CPU backend, `plugrad-cpu`.
"""
