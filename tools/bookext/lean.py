"""After the build: what a page loads and does not need is taken out of it.

- `search`: the index of the whole book comes with the page that searches, alone;
- `scripts`: they wait until the page can be read;
- `colours`: light or dark is known before anything is drawn;
- `arrows`: those that unfold a part of the list of pages have a name;
- `explorers`: the pictures of a slider, most of a page's bytes, come in a file of
  their own when the slider is near;
- `sizes`: every picture says how large it is, so that nothing moves when it arrives,
  and comes when it is nearly in sight;
- `styles`: rules for elements that no page has go, and with them most icons;
- `icons`, `letters`: the icons that the styles still draw, and the letters of most
  equations, come within the style sheets.
"""

import base64
import hashlib
import html
import io
import json
import logging
import re
import shutil
from pathlib import Path

import imagesize
from fontTools import subset
from fontTools.ttLib import TTFont

logging.getLogger("fontTools").setLevel(logging.WARNING)

# Scripts that are there for search alone, and one of 1.4 MB for icons that the style
# sheet draws anyway.
SEARCH = re.compile(
    r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js"></script>'
)
ICON_SCRIPT = re.compile(
    r'<(script|link)[^>]*"[^"]*scripts/fontawesome\.js[^>]*>(</script>)?\s*'
)
# The theme finds out whether the reader wants light or dark colours once the page is
# drawn, draws it again, and lines have moved.
AUTO = 'dataset.theme = localStorage.getItem("theme") || "auto";'
COLOURS = (
    'dataset.theme = localStorage.getItem("theme") || '
    '(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");'
)
ARROW = '<summary><span class="toctree-toggle"'
NAMED = ARROW.replace("<summary>", '<summary aria-label="Pages of this part">')
# From disk the page that searches may read no other, so it lists titles alone.
PAGE_NAME = "<script>DOCUMENTATION_OPTIONS.pagename"
FROM_DISK = """<script>
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
</script>
"""
# All but one, which sets what the inline scripts after it change.
HEAD_SCRIPT = re.compile(r'<script src="(?![^"]*documentation_options)')
FRAMES = re.compile(
    r'<form( class="explorer".*?oninput=")(.*?)'
    r'<script type="application/json">(.*?)</script></form>',
    re.DOTALL,
)
# A slider that was moved before its pictures came shows the right one when they do.
WAIT = "if (!this.data) return this.moved = true;"
ARRIVAL = """{
const form = document.currentScript.parentNode;
form.data = JSON.parse(%s);
if (form.moved) form.oninput();
}
"""
# A screen ahead of the reader.
FETCH = """{
const near = new IntersectionObserver(forms => {
  for (const form of forms) {
    if (!form.isIntersecting) continue;
    near.unobserve(form.target);
    const script = document.createElement("script");
    script.src = form.target.dataset.pictures;
    form.target.append(script);
  }
}, {rootMargin: "100%"});
document.querySelectorAll("form.explorer").forEach(form => near.observe(form));
}"""
PICTURE = re.compile(r'<img\b[^>]*?\bsrc="([^"]+)"[^>]*>')
RULE = re.compile(r"([^{}]+)\{[^{}]*\}")
LETTERS = re.compile(r"url\((fonts/KaTeX_(?:Main-Regular|Math-Italic)\.woff2)\)")
ICON_FONT = re.compile(
    r"@font-face\{[^}]*font-weight:(\d+);"
    r"src:url\(([^)]*/fa-\w+-\d+)\.woff2\)[^}]*\}"
)


def slim(app, error):
    """Rewrite the pages and style sheets of a finished build."""
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    pages = [path for path in folder.rglob("*.html") if path.parent.name != "_static"]
    words = set()
    for path in pages:
        text = slim_page(path.read_text(encoding="utf8"), path, folder)
        path.write_text(text, encoding="utf8")
        words |= class_names(text)
    scripts = [*folder.glob("_static/**/*.js")]
    for path in scripts:
        if path.name != "fontawesome.js":
            words |= set(re.findall(r"[\w-]+", path.read_text(encoding="utf8")))
    for path in folder.glob("_static/**/*.css"):
        text = styles(path.read_text(encoding="utf8"), words)
        path.write_text(letters(icons(text, path), path), encoding="utf8")
    for path in [*folder.glob("_static/scripts/*awesome*"), *folder.rglob("*.map")]:
        path.unlink(missing_ok=True)
    shutil.rmtree(folder / "_static/vendor/fontawesome", ignore_errors=True)


def slim_page(text, path, folder):
    """Return the page in its lean form; what leaves it becomes a file."""
    text = ICON_SCRIPT.sub("", text).replace(AUTO, COLOURS).replace(ARROW, NAMED)
    if path.name == "search.html":
        text = text.replace(PAGE_NAME, FROM_DISK + PAGE_NAME)
    else:
        text = HEAD_SCRIPT.sub('<script defer src="', SEARCH.sub("", text))
    return sizes(explorers(text, path, folder), path)


def explorers(text, path, folder):
    """Move the pictures of each explorer into a file that comes when it is near.

    The file is a script, because a page opened from disk may load nothing else.
    """

    def move(match):
        data = json.dumps(match[3])
        name = f"_static/explorers/{hashlib.sha256(data.encode()).hexdigest()[:16]}.js"
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(ARRIVAL % data, encoding="utf8")
        up = "../" * len(path.relative_to(folder).parent.parts)
        wait = html.escape(WAIT)
        return f'<form data-pictures="{up}{name}"{match[1]}{wait}{match[2]}</form>'

    text, moved = FRAMES.subn(move, text)
    return (
        text.replace("</body>", f"<script>{FETCH}</script>\n</body>") if moved else text
    )


def sizes(text, path):
    """Write its size on every picture; let all but the first wait for their turn."""
    seen = 0

    def declare(match):
        nonlocal seen
        tag, source = match[0], match[1]
        local = (path.parent / source).resolve()
        if source.startswith("data:") or " width=" in tag or not local.is_file():
            return tag
        seen += 1
        width, height = imagesize.get(local)
        wait = ' loading="lazy"' if seen > 1 or "_static" in source else ""
        return f'<img width="{width}" height="{height}"{wait}{tag[4:]}'

    return PICTURE.sub(declare, text)


def class_names(text):
    """Return the words that stand in the class attributes of a page."""
    return set(" ".join(re.findall(r"""\bclass=["']?([^"'>]*)""", text)).split())


def styles(text, words):
    """Return a style sheet without the rules that no page can match.

    A rule goes if each of its selectors asks for a class that is not among `words`.
    What stands in brackets, as in `:not(.this)`, asks for nothing.
    """

    def keep(match):
        selectors = re.sub(r"\([^()]*\)", "", match[1])
        for _ in range(2):
            selectors = re.sub(r"\([^()]*\)", "", selectors)
        selectors = re.sub(r"/\*.*?\*/", "", selectors, flags=re.DOTALL)
        wanted = (
            re.findall(r"\.(-?[A-Za-z_][\w-]*)", part) for part in selectors.split(",")
        )
        return match[0] if any(words >= set(names) for names in wanted) else ""

    return RULE.sub(keep, text)


def icons(text, path):
    """Keep of each icon font what the style sheet still names, within the sheet."""
    codes = {int(code, 16) for code in re.findall(r'"\\(f[0-9a-f]{3})"', text)}
    codes |= {ord(icon) for icon in re.findall('"([\uf000-\uf8ff])"', text)}

    def cut(match):
        font = TTFont(path.parent / f"{match[2]}.ttf")
        kept = codes & font.getBestCmap().keys()
        if not kept:
            return ""
        cutter = subset.Subsetter(subset.Options(layout_features=[]))
        cutter.populate(unicodes=kept)
        cutter.subset(font)
        font.flavor, file = "woff", io.BytesIO()
        font.save(file)
        source = f'src:url({data_uri(file.getvalue(), "woff")}) format("woff")'
        return re.sub("src:[^}]*", lambda _: source, match[0])

    return ICON_FONT.sub(cut, text)


def letters(text, path):
    """Put the fonts of most letters in equations into the sheet.

    Where they came later, lines broke anew and the page jumped.
    """

    def inline(match):
        return f"url({data_uri((path.parent / match[1]).read_bytes(), 'woff2')})"

    return LETTERS.sub(inline, text)


def data_uri(font, kind):
    """Return a font as an address that holds it."""
    return f"data:font/{kind};base64,{base64.b64encode(font).decode()}"


def setup(app):
    """Register for the very end, when every file is in its place."""
    app.connect("build-finished", slim, priority=900)
