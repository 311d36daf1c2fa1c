"""The pages of a report in a real browser: quiet, readable, and no script runs."""

import pytest

from coursework.pages import class_page, feedback_page
from tests.coursework.test_pages import SCRIPT, grade, hostile
from tests.test_pages import DESKTOP, PHONE, axe_faults, width_faults
from tests.test_pages import browser as browser
from tests.test_pages import visit as visit

LONG = "A title of many words that a phone has to break, " + "x" * 120
CLASS = [
    grade(exercise=f"{number}", status=status, title=LONG)
    for number in range(2)
    for status in ("ok", "late", "timeout", "killed", "memory", "unreadable", "missing")
]
PAGES = {
    "feedback": feedback_page([grade(), grade(title=LONG, problem=LONG)]),
    "class": class_page(CLASS),
    "hostile": feedback_page([hostile(SCRIPT + "<img src=x onerror=alert(1)>")]),
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("scheme", "width"), [("light", DESKTOP), ("dark", PHONE)])
def test_a_page_is_quiet_accessible_and_fits(visit, tmp_path, name, scheme, width):
    file = tmp_path / "page.html"
    file.write_text(PAGES[name])
    page = visit(file, width, scheme)
    assert page.faults == []
    assert width_faults(page) == []
    assert axe_faults(page) == []


def test_the_policy_of_a_page_stops_a_script_that_got_in(visit, tmp_path):
    file = tmp_path / "page.html"
    planted = '<script>document.title = "taken"</script></main>'
    file.write_text(PAGES["feedback"].replace("</main>", planted))
    page = visit(file)
    assert page.title() == "Feedback for Ada (7)"
    assert any("Content Security Policy" in fault for fault in page.faults)
