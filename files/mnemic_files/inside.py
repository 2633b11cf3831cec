"""What memory files use of mnemic beside its public names: all of it is named here, and why.

mnemic may change it in any version, so both distributions have one line of versions.
"""

# How errors name values, without quoting content.
# Memories as a repository takes them, checked, and the limits of their fields.
# Metadata with a file's version, which the HyDE engine shows.
from mnemic.hyde.turn_memory import FILE_VERSION, file_version
from mnemic.model import validation

# Which memories a repository deletes.
from mnemic.model.filter import Criteria
from mnemic.model.new_entry import NewEntry, checked_record

# Clocks of a program.
from mnemic.model.timestamps import checked_clock

# Files that appear complete under their names, and what a crash left of others.
from mnemic.new_files import file_errors, new_file, tidy_folder

# Records whose constructor explains its errors.
# Records whose repr hides content; base of all records.
from mnemic.records import NamedFields, Record, Redacted
from mnemic.reporting.description import described, is_word, quoted

# Objects that stay in their process.
from mnemic.reporting.habits import NotPickled

# Errors of a call that end at the call.
from mnemic.reporting.near_names import names_arguments

# Progress as every long call reports it.
from mnemic.reporting.progress import Report, reporting

# A memory's own repository: it stores in batches that may repeat what was recalled, reads deleted
# memories of all projects, and links many at once.
from mnemic.repository import Repository

# A lock that a signal handler does not wait for.
from mnemic.threads.locks import Lock

# One coroutine for plain and awaited calls.
from mnemic.threads.sync_bridge import run_blocking, run_sync, runs_sync

__all__ = [
    "FILE_VERSION",
    "Criteria",
    "Lock",
    "NamedFields",
    "NewEntry",
    "NotPickled",
    "Record",
    "Redacted",
    "Report",
    "Repository",
    "checked_clock",
    "checked_record",
    "described",
    "file_errors",
    "file_version",
    "is_word",
    "names_arguments",
    "new_file",
    "quoted",
    "reporting",
    "run_blocking",
    "run_sync",
    "runs_sync",
    "tidy_folder",
    "validation",
]
