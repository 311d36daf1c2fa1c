"""Rules that every chapter keeps, each a function from a chapter to its faults.

A fault is a line that names the cell and says what is wrong with it.
"""
