"""`tracecli check`: limits on the figures of a report, as a test that needs no GPU.

Everything here is a pure function of the report's JSON contract and of a budget's text: `names` finds
figures, `load` reads a budget, `check` judges, `make` writes a budget from a run, `render` says it.
"""
