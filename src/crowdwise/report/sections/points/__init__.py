"""Sections of pages about clicks."""
