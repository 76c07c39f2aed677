"""Probability distributions on plugrad; see `plugrad.distributions`."""
