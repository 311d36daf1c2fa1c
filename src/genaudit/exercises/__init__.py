"""Visible checks of the exercises: a module for each, a function for each answer.

They test properties, answer with a hint and never with the expected value. That they
pass does not prove an answer right: the hidden checks use other numbers.
"""
