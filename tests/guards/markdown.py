"""What stands in the Markdown cells: nothing that only the book can show."""

import re
from collections.abc import Iterator

from .notebook import Chapter

FENCE = re.compile(r"^ *(```+|~~~+)(?!\{).*?^ *\1 *$", re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"(?<![`}])(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
MATH = re.compile(r"\$\$.*?\$\$|(?<![\\$])\$(?!\s)[^$]+?\$", re.DOTALL)
BOOK_ALONE = {
    "a role": r"\{[a-z][\w:+.-]*\}`",
    "a directive": r"^ *(```+|~~~+|:::+)\{",
    "a colon fence": r"^ *:::",
    "a target": r"^ *\([\w-]+\)=\s*$",
    "a comment": r"^%",
    "a block break": r"^\+\+\+",
    "an attribute": r"[\])]\{[.#]",
    "an equation label": r"\$\$ *\([\w-]+\)",
    "a LaTeX reference": r"\\(eqref|ref|label|cite)\{",
    "a path": r"\]\((?!https?://|#|attachment:)[^)]*\)",
    "a footnote": r"\[\^",
}


def raw(chapter: Chapter) -> Iterator[str]:
    """The text reads well where MyST is not known, as in Colab."""
    for cell in chapter.markdown:
        unfenced = FENCE.sub("", cell.source)
        text = INLINE_CODE.sub("", unfenced)
        places = {
            "a directive": unfenced,
            "an equation label": text,
            "a LaTeX reference": text,
        }
        words = MATH.sub("", text)
        for what, pattern in BOOK_ALONE.items():
            if found := re.search(pattern, places.get(what, words), re.MULTILINE):
                yield f"{cell.id}: {what}, {found[0].strip()!r}, is for the book alone"
