"""Build docs/reference/api/: `python -m tools.reference`."""

from tools.reference.pages import Reference
from tools.reference.source import ROOT

FOLDER = ROOT / "docs" / "reference" / "api"


def main() -> None:
    """Write the pages in place of earlier ones, and fail where a public name has no text."""
    reference = Reference()
    pages = reference.pages()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for earlier in FOLDER.glob("*.md"):
        earlier.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    if reference.problems:
        raise SystemExit("\n".join(reference.problems))


if __name__ == "__main__":
    main()
