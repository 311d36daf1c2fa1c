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


def page(name):
    return (ROOT / "chapters" / f"{name}.md").read_text(encoding="utf8")


def rows(text):
    """The lines of a page's tables, each as what its cells link to."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[LINK.findall(cell) for cell in line.split("|")[1:-1]] for line in lines]


def unread(plan):
    """Exercises that come before a chapter that they name at their top."""
    read, found = set(), []
    for _, chapters, _, exercises in plan:
        read |= set(chapters)
        for name in exercises:
            (path,) = ROOT.glob(f"exercises/{name}.ipynb")
            head = Chapter(path).markdown[0].source
            named = re.search(r"\*\*Chapter\.\*\*.*", head)[0]
            found += [(name, need) for need in set(LINK.findall(named)) - read]
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


def test_a_semester_has_everything_once():
    plan = rows(page("teaching").partition("## Seven")[0])
    read = [name for row in plan for name in row[1]]
    done = [name for row in plan for name in row[3]]
    assert sorted([*read, "practice"]) == sorted(NOTEBOOKS)
    assert sorted(done) == sorted(EXERCISES)
    assert read == sorted(read, key=PLACE.get)


def test_an_exercise_comes_after_its_chapters():
    plan = rows(page("teaching").partition("## Seven")[0])
    assert unread(plan) == []
    late = [[[], [], [], ["gan_identity"]], [[], ["gan"], [], []]]
    assert unread(late) == [("gan_identity", "gan")]


def test_what_a_chapter_stands_on_comes_before_it():
    assert early(rows(page("ways"))) == []
    assert early([[["gan"], ["reverse"]]]) == [("gan", "reverse")]
