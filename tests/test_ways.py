"""The first page, the ways through the book and the course plan fit the contents."""

import re

import yaml

from tests.guards.notebook import CHAPTERS, ROOT, Chapter

LINK = re.compile(r"\]\((?:[^)]*/)?(\w+)\.(?:ipynb|md|html)(?:#[\w-]+)?\)")
PARTS = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))["parts"]
FILES = [chapter["file"] for part in PARTS for chapter in part["chapters"]]
PLACE = {file.rpartition("/")[2]: place for place, file in enumerate(FILES)}
EXERCISES = {file.rpartition("/")[2] for file in FILES if file.startswith("exercises/")}
NOTEBOOKS = {path.stem for path in CHAPTERS}


# Where else a chapter's reader finds what it explains itself.
ELSEWHERE = {
    "elbo": {"evidence"},
    "gan": {"elbo"},
    "pass_at_k": {"evidence"},
    "perplexity": {"evidence"},
}


def page(name):
    return (ROOT / "chapters" / f"{name}.md").read_text(encoding="utf8")


def rows(text):
    """The lines of a page's tables, each as what its cells link to."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[LINK.findall(cell) for cell in line.split("|")[1:-1]] for line in lines]


def unread(plan):
    """Exercises that come before a chapter that they link to."""
    read, found = set(), []
    for row in plan:
        read |= set(row[1])
        for name in row[-1]:
            book = Chapter(ROOT / "exercises" / f"{name}.ipynb")
            links = {
                link for cell in book.markdown for link in LINK.findall(cell.source)
            }
            found += sorted((name, need) for need in links & NOTEBOOKS - read)
    return found


def early(table):
    """Pages that a table of needs has before what they stand on."""
    return [
        (name, need)
        for (name, *_), needs in ((row[0], row[1]) for row in table if any(row))
        for need in needs
        if PLACE[need] > PLACE[name]
    ]


def test_the_first_page_leads_to_every_chapter():
    assert set(LINK.findall(page("index"))) >= NOTEBOOKS


def plans():
    """The rows of both plans."""
    return [rows(part) for part in page("teaching").split("## In the")[0].split("## ")]


def test_a_semester_has_everything_once():
    _, semester, _ = plans()
    read = [name for row in semester for name in row[1]]
    done = [name for row in semester for name in row[3]]
    assert sorted([*read, "practice"]) == sorted(NOTEBOOKS)
    assert sorted(done) == sorted(EXERCISES)
    assert read == sorted(read, key=PLACE.get)


def test_an_exercise_comes_after_its_chapters():
    _, *both = plans()
    # Their last parts send readers ahead, and the page says so.
    late = [("gan_identity", "evaluation"), ("forward_jump", "evaluation")]
    assert [unread(plan) for plan in both] == [late, late]
    swapped = [[[], [], ["gan_identity"]], [[], ["gan", "evaluation"], []]]
    assert ("gan_identity", "gan") in unread(swapped)


def needs(name):
    """The chapters that a chapter says at its top one needs."""
    head = Chapter(ROOT / "chapters" / f"{name}.ipynb").markdown[0].source
    said = re.search(r"You need:.*", head)
    text = said[0].split("[Notation]")[0] if said else ""
    return set(LINK.findall(text))


def test_ways_say_what_each_chapter_says_it_needs():
    table = {row[0][0]: set(row[1]) for row in rows(page("ways")) if row[0]}
    for name in sorted(NOTEBOOKS):
        missing = needs(name) - table.get(name, set()) - ELSEWHERE.get(name, set())
        assert not missing, (name, missing)


def test_what_a_chapter_stands_on_comes_before_it():
    # Its last section alone needs the other.
    assert early(rows(page("ways"))) == [("denoiser", "reverse")]
    assert early([[["gan"], ["reverse"]]]) == [("gan", "reverse")]
