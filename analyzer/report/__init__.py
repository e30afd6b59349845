"""What a report is: columns declared once, blocks that renderers draw, one codec for all kinds of report.

A figure is declared where it is filled, as a field of a `Row`: its key, unit, title and meaning. JSON and its
schema, the terminal, Markdown, budgets and `tracecli schema` all come from that declaration.
"""
