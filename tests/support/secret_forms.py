"""The forms in which a secret text or vector could be in a file, and the search for them."""

import base64
import os
from pathlib import Path

import numpy as np

_COMPONENTS = 4
"""Components of a vector that stand side by side nowhere else."""


def forms_of(secret):
    """Return the bytes by which a text would be known: as it is and in Base64, in three codes."""
    encoded = [secret.encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be")]
    return [form for data in encoded for form in (data, *in_base64(data))]


def in_base64(data):
    """Return what Base64 has of bytes in the middle of others, at each of the three alignments."""
    found = []
    for before in range(3):
        whole = base64.b64encode(bytes(before) + data)
        first, end = -(-8 * before // 6), (before + len(data)) * 8 // 6
        found.append(whole[first:end])
    return found


def forms_of_vector(vector):
    """Return the bytes by which a vector would be known: parts of it, in three precisions."""
    single = np.asarray(vector, "<f4")
    whole = np.rint(single / np.abs(single).max() * 127).astype(np.int8)
    forms = [
        of_kind[at : at + size].tobytes()
        for of_kind, size in ((single, 4), (single.astype("<f2"), 8), (whole, 16))
        for at in range(0, single.size - size + 1, _COMPONENTS)
    ]
    return [form for data in forms for form in (data, *in_base64(data))]


def shown(data, secrets, vectors=()):
    """Return the secrets that bytes hold in any form, and the numbers of vectors."""
    folded = data.lower()
    texts = [
        secret
        for secret in secrets
        if any(form in data or form.lower() in folded for form in forms_of(secret))
    ]
    return texts + [
        number
        for number, vector in enumerate(vectors)
        if any(form in data for form in forms_of_vector(vector))
    ]


def written_in(folder):
    """Return the bytes of every file in a folder and below it, by name."""
    while True:
        files = [Path(path, name) for path, _, names in os.walk(folder) for name in names]
        try:
            return {str(file.relative_to(folder)): file.read_bytes() for file in files}
        except FileNotFoundError:  # a part got its name meanwhile; it is read under that one
            continue


def left_in(folder, secrets, vectors=()):
    """Return what each file shows of secrets; files that show none are missing."""
    found = {
        name: shown(data, secrets, vectors) for name, data in sorted(written_in(folder).items())
    }
    return {name: texts for name, texts in found.items() if texts}
