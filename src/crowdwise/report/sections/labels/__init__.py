"""Sections of pages about labels."""
