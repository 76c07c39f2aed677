"""Families of operators that are loaded when somebody asks for one of theirs."""
