"""The reference of every public name, from the signatures and docstrings of the package.

`make docs` builds docs/reference/api/, which no commit has. The public names are those in `__all__`
of `mnemic` and of its public modules, and all of `mnemic.errors`. Each goes to the page of the
module that it comes from. `Reference.problems` lists names, methods and parameters without a text.
"""
