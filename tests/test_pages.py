"""The built book in a real browser, from disk and without a network.

Every check is a function from a loaded page to a list of faults. The first half asks
for no fault on any page of the book, the second that each check sees a planted one.

To open a page takes longer than to check it, so each is opened twice: on a desktop in
light colours, on a phone in dark ones.
"""

import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import matplotlib.pyplot as plt
import pytest

from genaudit.explore import explore
from tools.bookext.lean import explorers

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

# What a page may cost until its reader has seen its end: bytes with all that it loads,
# not compressed; requests; and jumps of its content, as a part of the screen.
BYTES, REQUESTS, SHIFT = 1_500_000, 40, 0.1
NOTE_SHIFTS = """
window.shifted = 0;
new PerformanceObserver(list => list.getEntries().forEach(entry => {
  if (!entry.hadRecentInput) window.shifted += entry.value;
})).observe({type: "layout-shift", buffered: true});
"""
# To the end, a screen at a time; each stop lasts two frames, so that it is drawn.
READ_ON = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {
    scrollTo({top: y, behavior: "instant"});
    await frame(); await frame();
  }
  scrollTo({top: 0, behavior: "instant"});
  await frame(); await frame();
}"""


def built(book):
    """Names of the book's pages, without the one that only leads to the first."""
    pages = {str(page.relative_to(book)) for page in book.rglob("*.html")}
    return sorted(page for page in pages if not page.startswith(("_", "index.html")))


PAGES = built(BOOK) or ["index.html"]


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


@pytest.fixture(scope="module", params=PAGES)
def desktop(request, browser):
    """A page of the book as most readers see it."""
    page = open_page(browser, book_page(BOOK, request.param))
    yield page
    page.context.close()


@pytest.fixture(scope="module", params=PAGES)
def phone(request, browser):
    """A page of the book on a narrow screen, in dark colours."""
    page = open_page(browser, book_page(BOOK, request.param), PHONE, "dark")
    yield page
    page.context.close()


@pytest.fixture
def visit(browser):
    """Open a file, and close it after the test."""
    pages = []

    def open_file(file, *form, **options):
        pages.append(open_page(browser, file, *form, **options))
        return pages[-1]

    yield open_file
    for page in pages:
        page.context.close()


def open_page(browser, file, width=DESKTOP, scheme="light"):
    """Open a file and read it to its end; note what it asks for and complains of."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    context.route(lambda url: url.startswith("http"), lambda route: route.abort())
    page = context.new_page()
    page.file, page.faults, page.asked = file, [], []
    page.on("console", lambda message: note_message(page, message))
    page.on("pageerror", lambda error: page.faults.append(f"error: {error}"))
    page.on("request", lambda request: note_request(page, request.url))
    page.add_init_script(NOTE_SHIFTS)
    page.goto(file.as_uri())
    page.evaluate("document.fonts.ready.then(() => 0)")
    page.evaluate(READ_ON)
    page.shifted = page.evaluate("window.shifted")
    page.wait_for_function(
        "[...document.querySelectorAll('form[data-pictures]')].every(f => f.data)"
    )
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    return page


def note_message(page, message):
    if message.type == "error":
        page.faults.append(f"console: {message.text}")


def note_request(page, url):
    if url.startswith(("data:", "blob:")):
        return
    page.asked.append(url)
    if not url.startswith("file:"):
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


def size_faults(page):
    """Pictures that are stretched, or for which no room is kept until they come."""
    sizes = page.eval_on_selector_all(
        "img",
        """all => all.map(e => [e.src, e.getAttribute('width') > 0 &&
          e.getAttribute('height') > 0, e.clientWidth * e.naturalHeight,
          e.clientHeight * e.naturalWidth])""",
    )
    for source, declared, one, other in sizes:
        if not declared:
            yield f"{source[-60:]} does not say how large it is"
        elif abs(one - other) > 0.02 * one:
            yield f"{source[-60:]} is stretched"


def cost_faults(page):
    """What is above its limit."""
    loaded = [Path(unquote(urlsplit(url).path)) for url in set(page.asked)]
    costs = {
        "bytes": (sum(path.stat().st_size for path in loaded if path.is_file()), BYTES),
        "requests": (len(page.asked), REQUESTS),
        "of the screen jumps": (page.shifted, SHIFT),
    }
    return [
        f"{cost:.7g} {what}, {limit} allowed"
        for what, (cost, limit) in costs.items()
        if cost > limit
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


def print_faults(page):
    """What paper cannot show: controls, wide things, folded answers, light letters."""
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    paper = {"width": 680, "height": 1000}  # a sheet of A4 between its margins
    screen = page.viewport_size
    page.set_viewport_size(paper)
    faults = page.evaluate(
        """() => {
        const shown = selector => [...document.querySelectorAll(selector)]
          .filter(e => e.checkVisibility());
        const faults = shown('.bd-sidebar, .bd-article button, .bd-header-article, '
          + '.bd-article input, .prev-next-footer').map(e => `${e.className} is shown`);
        const folded = document.querySelectorAll('.bd-article details:not([open])');
        const cut = shown('.bd-article :is(pre, .equation)')
          .filter(e => e.scrollWidth > e.clientWidth + 1);
        const wide = shown('.bd-article :is(table, img, .base)')
          .filter(e => e.getBoundingClientRect().right > innerWidth + 1);
        if (folded.length) faults.push(`${folded.length} answers are folded`);
        if (cut.length) faults.push(`${cut.length} cells or equations are cut`);
        if (wide.length) faults.push(`${wide.length} go beyond the paper`);
        if (document.documentElement.dataset.theme !== 'light')
          faults.push('letters are light');
        return faults;
    }"""
    )
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.set_viewport_size(screen)
    return faults


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


def test_costs(desktop):
    assert cost_faults(desktop) == []


def test_mathematics(desktop):
    text = re.sub(r"data:image[^\"]*", "", source_of(desktop.file))
    expected = bool(re.search(r"\$.+?\$", text))
    assert mathematics_faults(desktop, expected=expected) == []


def test_every_explorer_of_the_notebook_is_in_the_page(desktop):
    stored = source_of(desktop.file).count('<form class=\\"explorer\\"')
    assert desktop.locator("form.explorer").count() == stored


def test_pictures(desktop):
    assert alt_faults(desktop) == []
    assert list(size_faults(desktop)) == []


def test_accessible_on_a_desktop(desktop):
    assert desktop.evaluate("document.documentElement.dataset.theme") == "light"
    assert axe_faults(desktop) == []


def test_explorers_answer(desktop):
    assert explorer_faults(desktop) == []


def test_paper_has_no_controls_and_hides_nothing(desktop):
    assert print_faults(desktop) == []


def test_page_was_quiet_and_asked_nobody(desktop):
    assert desktop.faults == []


def test_accessible_on_a_phone(phone):
    assert phone.evaluate("document.documentElement.dataset.theme") == "dark"
    assert axe_faults(phone) == []


def test_fits_a_phone(phone):
    assert width_faults(phone) == []
    assert cost_faults(phone) == []
    assert phone.faults == []


def test_search_works_from_disk(visit):
    page = visit(book_page(BOOK, PAGES[0]))
    page.locator(".search-button-field").click()
    page.keyboard.type("Jensen")
    page.keyboard.press("Enter")
    page.get_by_text("Search finished").wait_for()
    found = page.locator("#search-results li a")
    assert "The ledger of claims" in found.all_inner_texts()
    assert page.faults == []
    found.first.click()
    page.wait_for_selector("article mark, article .highlighted")


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_links_lead_to_their_places(browser, width):
    """Also to places below pictures and equations that were not yet on the screen."""
    name = max(PAGES, key=lambda name: book_page(BOOK, name).stat().st_size)
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((BOOK / name).as_uri())
    places = "all => all.map(link => link.getAttribute('href'))"
    for place in page.eval_on_selector_all("#pst-page-toc-nav a", places)[1:-3]:
        page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        page.evaluate("place => location.hash = place", place)
        page.wait_for_timeout(100)
        top = "document.querySelector(location.hash).getBoundingClientRect().top"
        assert 0 <= page.evaluate(top) < 120, place
    page.close()


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
    assert list(size_faults(page)) == []
    assert cost_faults(page) == []
    assert width_faults(page) == []
    assert axe_faults(page) == []
    assert page.faults == []


def test_a_slider_moved_before_its_pictures_came_catches_up(browser, good, tmp_path):
    """A slow network is played by holding back the file with the pictures."""
    (tmp_path / "_static").mkdir()
    file, held = tmp_path / "page.html", []
    text = good.replace("</main>", "</main></body>")
    file.write_text(explorers(text, file, tmp_path))
    page = browser.new_page()
    page.route("**/explorers/*.js", lambda route: held.append(route))
    page.goto(file.as_uri())
    explorer = page.locator("form.explorer")
    first = picture(explorer)
    explorer.locator("input[type=range]").press("End")
    assert picture(explorer) == first
    held[0].continue_()
    page.wait_for_function("document.querySelector('form').data")
    assert picture(explorer) != first
    assert explorer.locator("output").inner_text() == "up to 3"
    page.close()


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


@pytest.mark.parametrize(
    ("planted", "seen"),
    [
        ("<article class=bd-article><input></article>", " is shown"),
        ("<aside class=bd-sidebar>x</aside>", "bd-sidebar is shown"),
        (
            f"<article class=bd-article><pre style='overflow:auto'>{200 * 'x'}</pre>",
            "1 cells or equations are cut",
        ),
        (
            "<article class=bd-article><table width=900>x</table>",
            "1 go beyond the paper",
        ),
        ("<article class=bd-article><details>x</details>", "1 answers are folded"),
        ("", "letters are light"),
    ],
)
def test_what_paper_cannot_show_is_seen(visit_text, planted, seen):
    page = visit_text(f"<!doctype html>{planted}")
    assert any(fault.endswith(seen) for fault in print_faults(page))


@pytest.mark.parametrize("planted", ["<img src=''>", "<img src='' alt=' '>"])
def test_missing_alt_is_seen(visit_text, planted):
    assert alt_faults(visit_text(planted)) == ["picture 0 has no alt text"]


@pytest.mark.parametrize(
    ("planted", "seen"),
    [
        ("<img src='' alt=x>", "how large"),
        ("<img width=2 height=0>", "how large"),
        ("<img width=40 height=80 src='square.svg'>", "stretched"),
    ],
)
def test_picture_of_no_size_or_odd_shape_is_seen(visit_text, tmp_path, planted, seen):
    square = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'
    (tmp_path / "square.svg").write_text(square)
    style = "<style>img { object-fit: fill }</style>"
    (fault,) = size_faults(visit_text(style + planted))
    assert seen in fault


@pytest.mark.parametrize(
    ("planted", "seen"),
    [
        ("<!--" + BYTES * "x" + "-->", "bytes"),
        ("<script src='big.js'></script>", "bytes"),
        ("".join(f"<img src='{i}'>" for i in range(REQUESTS)), "requests"),
        (
            "<p id=late></p><p style='font-size: 300px'>text</p>"
            "<script>const next = requestAnimationFrame;"
            "onload = () => next(() => next(() => late.style.height = '600px'))"
            "</script>",
            "of the screen jumps",
        ),
    ],
)
def test_cost_is_seen(visit_text, tmp_path, planted, seen):
    (tmp_path / "big.js").write_text("/*" + BYTES * "x" + "*/")
    faults = cost_faults(visit_text(f"<!doctype html>{planted}"))
    assert any(seen in fault for fault in faults)


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
