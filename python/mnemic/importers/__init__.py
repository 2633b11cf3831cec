"""Brings in the memories of other libraries, chats and files, and writes them for others.

`record.py` has what a reader gives, `kinds.py` the readers by name, `importing.py` stores what one
reads. A reader opens no source for writing, needs no library of the source, and holds one record.
"""
