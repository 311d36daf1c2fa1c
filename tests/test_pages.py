"""The built book in a real browser, from disk and without a network.

Every check is a function from a loaded page to a list of faults. The first half asks
for no fault on any page of the book, the second that each check sees a planted one.
"""

import os
import re
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from genaudit.explore import explore

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
if not CHROMIUM:
    pytest.skip(
        "no browser to open the pages with: install Debian's chromium, or name the "
        "program in the variable CHROMIUM",
        allow_module_level=True,
    )
sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright, which drives the browser, is missing"
)
Axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright",
    reason="axe-playwright-python, which holds the accessibility rules, is missing",
).Axe

BOOK = Path(__file__).parents[1] / "_build" / "html"
PHONE, DESKTOP = 390, 1280


def built(book):
    """Names of the book's pages, without the one that only leads to the first."""
    pages = {str(page.relative_to(book)) for page in book.rglob("*.html")}
    return sorted(page for page in pages if not page.startswith(("_", "index.html")))


@pytest.fixture(params=built(BOOK) or ["index.html"])
def page_file(request):
    return book_page(BOOK, request.param)


def book_page(book, name):
    if not (book / name).exists():
        pytest.fail("the book is not built: run `make book`")
    return book / name


@pytest.fixture(scope="module")
def browser():
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    options += ["--disable-component-update", "--disable-sync"]
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser):
    """Open a file as a reader would; note what it asks for and complains of."""
    contexts = []

    def open_file(file, width=DESKTOP, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.faults = []
        context.route(lambda url: url.startswith("http"), lambda route: route.abort())
        page.on("console", lambda message: note_message(page, message))
        page.on("pageerror", lambda error: page.faults.append(f"error: {error}"))
        page.on("request", lambda request: note_request(page, request.url))
        page.goto(file.as_uri())
        page.evaluate("document.fonts.ready.then(() => 0)")
        page.evaluate(
            "document.querySelectorAll('details').forEach(d => d.open = true)"
        )
        return page

    yield open_file
    for context in contexts:
        context.close()


def note_message(page, message):
    if message.type == "error":
        page.faults.append(f"console: {message.text}")


def note_request(page, url):
    if not url.startswith(("file:", "data:", "blob:")):
        page.faults.append(f"asks for {url}")


def source_of(file):
    """The notebook or Markdown that a page was made of; the build keeps it."""
    for suffix in (".ipynb", ".md"):
        source = BOOK / "_sources" / file.relative_to(BOOK).with_suffix(suffix)
        if source.exists():
            return source.read_text()
    return ""


def mathematics_faults(page, expected):
    """Raw LaTeX in the text, faulty equations, or none where some are expected."""
    text = page.evaluate(
        """() => {
        const copy = document.body.cloneNode(true);
        const hidden = 'pre, code, script, style, .katex';
        copy.querySelectorAll(hidden).forEach(e => e.remove());
        return copy.textContent;
    }"""
    )
    raw = re.findall(r".{0,20}(?:\$|\\[A-Za-z]+).{0,20}", text)
    faults = [f"raw LaTeX: {found}" for found in raw]
    shown = page.locator(".katex-html").count()
    if expected and not shown:
        faults.append("no equation is rendered")
    if page.locator(".katex-error").count():
        faults.append("a faulty equation")
    loaded = "[...document.fonts].some(f => /KaTeX/.test(f.family + f.status)"
    if shown and not page.evaluate(loaded + " && f.status == 'loaded')"):
        faults.append("the fonts of the equations are missing")
    return faults


def alt_faults(page):
    texts = page.eval_on_selector_all("img", "all => all.map(e => e.alt)")
    return [
        f"picture {i} has no alt text" for i, t in enumerate(texts) if not t.strip()
    ]


def width_faults(page):
    width = page.evaluate("document.documentElement.scrollWidth")
    room = page.viewport_size["width"]
    return [f"{width} pixels wide on a screen of {room}"] if width > room else []


def axe_faults(page):
    # A change of colours that is still under way would be judged half-way.
    page.evaluate("Promise.all(document.getAnimations().map(a => a.finished))")
    # The drawn half of an equation is hidden from assistive programs, which get the
    # other half; to judge it takes most of the time.
    context = {"exclude": [[".katex-html"]]}
    # A preload would fetch style sheets, which a page from disk may not.
    options = {"preload": False, "resultTypes": ["violations"]}
    result = Axe().run(page, context=context, options=options)
    return [
        f"{rule['id']}: {node['html'][:200]}"
        for rule in result.response["violations"]
        for node in rule["nodes"]
    ]


def explorer_faults(page):
    """What does not answer to the mouse, the keyboard or a choice."""
    faults = []
    for explorer in page.locator("form.explorer").all():
        explorer.scroll_into_view_if_needed()
        checks = {
            "the mouse": drag_pictures,
            "the keyboard": key_pictures,
            "the choices": choice_pictures,
        }
        for means, pictures in checks.items():
            seen = pictures(page, explorer)
            if any(a == b for a, b in zip(seen, seen[1:], strict=False)):
                name = explorer.get_attribute("id")
                faults.append(f"{name}: a picture does not change by {means}")
    return faults


def picture(explorer):
    """What the explorer shows, once the browser has decoded it."""
    return explorer.locator("img").evaluate(
        "async image => { await image.decode(); return image.src; }"
    )


def drag_pictures(page, explorer):
    """Pull the slider with the mouse from its lower end to the upper, stop by stop."""
    slider = explorer.locator("input[type=range]")
    box = slider.bounding_box()
    thumb = 16  # pixels; its centre cannot come nearer to an end than half of that
    last = int(slider.get_attribute("max"))
    stops = [
        box["x"] + thumb / 2 + (box["width"] - thumb) * stop / last
        for stop in range(last + 1)
    ]
    height = box["y"] + box["height"] / 2
    page.mouse.move(stops[0], height)
    page.mouse.down()
    seen = []
    for stop in stops:
        page.mouse.move(stop, height)
        seen.append(picture(explorer))
    page.mouse.up()
    return seen


def key_pictures(page, explorer):
    """Walk with the arrow key from the lower end to the upper."""
    slider = explorer.locator("input[type=range]")
    slider.focus()
    page.keyboard.press("Home")
    seen = [picture(explorer)]
    for _ in range(int(slider.get_attribute("max"))):
        page.keyboard.press("ArrowRight")
        seen.append(picture(explorer))
    return seen


def choice_pictures(_, explorer):
    """Click every choice, the one chosen at first last."""
    labels = explorer.locator("label:has(input[type=radio])").all()
    seen = [picture(explorer)] if labels else []
    for label in labels[1:] + labels[:1]:
        label.click()
        seen.append(picture(explorer))
    return seen


def test_page_is_quiet_and_asks_nobody(page_file, visit):
    assert visit(page_file).faults == []


def test_mathematics(page_file, visit):
    page = visit(page_file)
    text = re.sub(r"data:image[^\"]*", "", source_of(page_file))
    assert mathematics_faults(page, expected=bool(re.search(r"\$.+?\$", text))) == []


def test_every_explorer_of_the_notebook_is_in_the_page(page_file, visit):
    stored = source_of(page_file).count('<form class=\\"explorer\\"')
    assert visit(page_file).locator("form.explorer").count() == stored


def test_explorers_answer(page_file, visit):
    assert explorer_faults(visit(page_file)) == []


def test_alt_texts(page_file, visit):
    assert alt_faults(visit(page_file)) == []


@pytest.mark.parametrize(("scheme", "width"), [("light", DESKTOP), ("dark", PHONE)])
def test_accessible(page_file, visit, scheme, width):
    page = visit(page_file, width, scheme)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert axe_faults(page) == []


def test_fits_a_phone(page_file, visit):
    assert width_faults(visit(page_file, width=PHONE)) == []


def test_first_page_leads_into_the_book():
    redirect = book_page(BOOK, "index.html").read_text()
    assert (BOOK / re.search(r"url=([^\"]+)", redirect)[1]).exists()


# The checks themselves


def good_page(choices=("up", "down")):
    def draw(value, choice):
        figure, axes = plt.subplots()
        axes.plot([0, value if choice == choices[0] else -value])
        return figure, f"{choice} to {value}"

    shown = explore(
        draw, [1, 2, 3], label="v", alt="a line", choices=choices, choice_label="way"
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Page</title>'
        f"<main><h1>Page</h1>{shown._repr_mimebundle_()['text/html']}</main></html>"
    )


@pytest.fixture(scope="module")
def good():
    return good_page()


@pytest.fixture
def visit_text(visit, tmp_path):
    def open_text(text, **options):
        file = tmp_path / "page.html"
        file.write_text(text)
        return visit(file, **options)

    return open_text


def test_checks_pass_a_good_page(good, visit_text):
    page = visit_text(good, width=PHONE)
    assert explorer_faults(page) == []
    assert mathematics_faults(page, expected=False) == []
    assert alt_faults(page) == []
    assert width_faults(page) == []
    assert axe_faults(page) == []
    assert page.faults == []


@pytest.mark.parametrize(
    ("planted", "seen"),
    [
        ("<script>console.error('oh')</script>", "console: oh"),
        ("<script>missing()</script>", "error: missing is not defined"),
        ("<img src='http://example.org/x.png' alt='x'>", "asks for http://example.org"),
        ("<script src='none.js'></script>", "ERR_FILE_NOT_FOUND"),
    ],
)
def test_noise_is_seen(visit_text, planted, seen):
    page = visit_text(f"<!doctype html><p>{planted}")
    page.wait_for_timeout(100)
    assert seen in "\n".join(page.faults)


@pytest.mark.parametrize(
    ("planted", "seen"),
    [
        ("<p>costs $5</p>", ["raw LaTeX: costs $5"]),
        (r"<p>\frac{1}{2}</p>", [r"raw LaTeX: \frac{1}{2}"]),
        (r"<pre>\frac $</pre>", ["no equation is rendered"]),
        ("<i class=katex-html>x</i><i class=katex-error>x</i>", ["a faulty equation"]),
        ("<i class=katex-html>x</i>", ["the fonts of the equations are missing"]),
    ],
)
def test_unrendered_mathematics_is_seen(visit_text, planted, seen):
    page = visit_text(f"<!doctype html>{planted}")
    assert set(seen) <= set(mathematics_faults(page, expected=True))


@pytest.mark.parametrize("planted", ["<img src=''>", "<img src='' alt=' '>"])
def test_missing_alt_is_seen(visit_text, planted):
    assert alt_faults(visit_text(planted)) == ["picture 0 has no alt text"]


def test_wide_page_is_seen(visit_text, good):
    wide = good.replace("<h1>", '<h1 style="width:500px">')
    assert width_faults(visit_text(wide, width=PHONE)) != []


def test_missing_label_is_seen(visit_text, good):
    unlabelled = good.replace("<span>v</span>", "")
    assert any(
        fault.startswith("label:") for fault in axe_faults(visit_text(unlabelled))
    )


@pytest.mark.parametrize(
    ("old", "new", "means"),
    [
        (" oninput=", " data-off=", {"the mouse", "the keyboard", "the choices"}),
        ("+e.choice.value", "0", {"the choices"}),
        (
            '<input type="range"',
            '<input onkeydown="return false" type="range"',
            {"the keyboard"},
        ),
        (
            '<input type="range"',
            '<input onmousedown="return false" type="range"',
            {"the mouse"},
        ),
    ],
)
def test_dead_explorer_is_seen(visit_text, good, old, new, means):
    assert old in good
    faults = explorer_faults(visit_text(good.replace(old, new)))
    assert {fault.rpartition(" by ")[2] for fault in faults} == means


def test_unbuilt_book_is_told(tmp_path):
    with pytest.raises(pytest.fail.Exception, match="run `make book`"):
        book_page(tmp_path, "index.html")
    assert built(tmp_path) == []
