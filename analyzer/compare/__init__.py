"""Runs side by side: aligned by step, annotation, operator and kernel, per unit of work."""
