"""The software under attack: `make attack`, or `python -m attack [PART ...]`. Each part is a module here.

A part tries one thing many times, each time as a seed says, and returns what went wrong, or nothing. Any failure can be
tried again alone: `python -m attack PART --replay SEED`.
"""
