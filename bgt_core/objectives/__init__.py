"""Objectives: `(Outputs, step) -> Loss`. A recipe has a `Sum` of named parts, which use outputs only.

A new one is a subclass of `part.Part` in one file; a recipe names it in its `Sum`.
"""
