"""Sections of the page, one module each, in a folder per kind of answers."""
