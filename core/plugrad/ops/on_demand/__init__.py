"""Families of operators that are loaded when one of their operators is first used."""
