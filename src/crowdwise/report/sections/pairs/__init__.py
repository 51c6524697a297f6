"""Sections of pages about pairs."""
