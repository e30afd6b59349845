"""`tracecli check`: limits on the figures of a report, as a test that needs no GPU.

`load` reads a budget, `check` judges a report by it, `outcome` says what the answer consists of, and `make`
writes a budget from a run.
"""
