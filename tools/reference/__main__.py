"""Write docs/reference/: `python -m tools.reference`."""

from tools.reference.pages import Reference
from tools.reference.source import ROOT

FOLDER = ROOT / "docs" / "reference"


def main() -> None:
    """Write the pages, and remove those that are no more."""
    pages = Reference().pages()
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
