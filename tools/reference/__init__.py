"""The reference of every public name, from the signatures and docstrings of the package.

`make docs` writes docs/reference/. The public names are those in `__all__` of `mnemic`,
`mnemic.events` and `mnemic.annotations`, and all of `mnemic.errors`. Each goes to the page of the
room that it comes from. `Reference.problems` lists names, methods and parameters without a text.
"""
