"""What a page says of itself: version and time in its footer, tags for links to it."""

import base64
import io
import json
import re
import shutil
import subprocess
import types
from urllib.parse import parse_qs, urlsplit

import pytest
from docutils import nodes
from docutils.utils import new_document
from PIL import Image

from tests.guards.notebook import CHAPTERS
from tools.bookext.provenance import add_provenance, commit, described, stored_runs
from tools.bookext.sharing import CARD, description, picture, site
from tools.times import STORE, entered, processor

RUN = {
    "measured": "2026-01-02",
    "machine": "a machine",
    "python": "3.12.1",
    "torch": "2.1.0",
    "numpy": "2.2.0",
    "seconds": {"fast": 1.0, "slow": 20.25},
}


def app(**more):
    options = {
        "repository_url": "https://github.com/someone/a-book",
        "repository_branch": "v1.2.3",
    }
    config = types.SimpleNamespace(html_theme_options=options)
    return types.SimpleNamespace(config=config, commit="", run_times=[RUN], **more)


def test_every_chapter_has_a_time():
    times = {name for run in stored_runs(STORE) for name in run["seconds"]}
    missing = {path.stem for path in CHAPTERS} - times
    assert not missing, f"no run time of {missing}: `python -m tools.times NOTEBOOK`"


def test_the_footer_knows_version_commit_and_time():
    built = app()
    built.commit = "abc1234"
    context = {}
    add_provenance(built, "chapters/slow", "", context, None)
    assert context["version"] == "v1.2.3, commit abc1234"
    assert context["run"]["seconds"] == 20.25 and context["run"]["torch"] == "2.1.0"
    add_provenance(app(), "chapters/none", "", context, None)
    assert context["version"] == "v1.2.3" and context["run"] is None


def test_the_button_for_reports_names_page_and_version():
    button = {"label": "source-issues-button", "url": "the theme's"}
    other = {"label": "source-repository-button", "url": "stays"}
    context = {"header_buttons": [{}, {"buttons": [other, button, {}]}]}
    add_provenance(app(), "exercises/x", "", context, None)
    address = urlsplit(button["url"])
    assert address.path == "/someone/a-book/issues/new"
    query = parse_qs(address.query)
    assert query["title"] == ["exercises/x: "]
    assert query["body"][0].startswith("Page: exercises/x.html\nVersion: v1.2.3\n")
    assert "+" not in address.query and other["url"] == "stays"


def test_the_table_of_times_begins_with_the_slowest():
    text = described(RUN)
    assert text.startswith(
        "Measured on 2026-01-02: a machine; Python 3.12.1, torch 2.1"
    )
    assert re.findall(r"chapters/(\w+)\.ipynb\) \| ([\d.]+) \|", text) == [
        ("slow", "20.2"),
        ("fast", "1.0"),
    ]
    assert "| **21** |" in text


def test_a_new_time_replaces_the_old_one_and_keeps_the_others():
    now = {key: RUN[key] for key in RUN if key != "seconds"}
    same_day = entered([RUN], now, "slow", 30.06)
    assert same_day == [RUN | {"seconds": {"fast": 1.0, "slow": 30.1}}]
    later = entered(same_day, now | {"measured": "2026-02-03"}, "slow", 5.0)
    assert [run["seconds"] for run in later] == [{"fast": 1.0}, {"slow": 5.0}]
    last = entered(later, now | {"measured": "2026-02-03"}, "fast", 2.0)
    assert [run["seconds"] for run in last] == [{"fast": 2.0, "slow": 5.0}]
    assert RUN["seconds"] == {"fast": 1.0, "slow": 20.25}


def test_a_processor_has_a_name(tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor: 0\nmodel name\t: A Chip 9\nmodel name\t: other\n")
    assert processor(cpuinfo) == "A Chip 9"
    assert processor(tmp_path / "none")


def test_no_times_yet(tmp_path):
    assert stored_runs(tmp_path / "none.json") == []
    (tmp_path / "some.json").write_text(json.dumps([RUN]))
    assert stored_runs(tmp_path / "some.json") == [RUN]


@pytest.mark.skipif(not shutil.which("git"), reason="git is missing")
def test_the_commit_is_short_and_tells_of_changes(tmp_path):
    assert commit(tmp_path) == ""

    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True)

    (tmp_path / "file").write_text("one")
    git("init", "-q")
    git("add", "file")
    git("commit", "-qm", "first")
    git("tag", "v9")
    assert re.fullmatch("[0-9a-f]{7,}", commit(tmp_path))
    (tmp_path / "file").write_text("two")
    assert re.fullmatch("[0-9a-f]{7,} with changes", commit(tmp_path))


def test_the_site_follows_the_repository():
    assert site(app().config) == "https://someone.github.io/a-book/"


def page_of(*children):
    tree = new_document("page")
    tree += nodes.title(text="A title")
    tree.extend(children)
    return tree


def test_the_description_is_the_first_paragraph():
    question = nodes.paragraph()
    question += [nodes.strong(text="The question."), nodes.Text(" Why\nso?")]
    raw = nodes.paragraph(text=r"\frac{1}{2}")
    shown = nodes.paragraph("", "", nodes.image(alt="a picture"))
    assert description(page_of(raw, shown, question)) == "Why so?"
    long = description(page_of(nodes.paragraph(text=100 * "word ")))
    assert len(long) <= 200 and long.endswith("word…")
    assert description(page_of()) == ""


def figure(folder, width, height):
    Image.new("RGB", (width, height)).save(folder / f"{width}.png")
    return nodes.image(
        uri=f"../_images/{width}.png", alt="a figure", candidates={"*": f"{width}.png"}
    )


def builder(folder):
    return types.SimpleNamespace(srcdir=folder, outdir=folder, imagedir="_images")


def test_the_picture_is_the_first_figure_of_a_good_shape(tmp_path):
    strip, small, good = (
        figure(tmp_path, *size) for size in ((900, 100), (300, 200), (600, 400))
    )
    found = picture("chapters/x", page_of(strip, small, good), builder(tmp_path))
    assert found == ("_images/600.png", "a figure")
    assert picture("x", page_of(strip), builder(tmp_path))[0] == CARD


def test_the_picture_can_be_what_an_explorer_shows_first(tmp_path):
    file = io.BytesIO()
    Image.new("RGB", (640, 360)).save(file, "webp")
    form = (
        '<form class="explorer"><img src="data:image/webp;base64,'
        f'{base64.b64encode(file.getvalue()).decode()}" alt="a &lt; b"></form>'
    )
    tree = page_of(nodes.raw("", "<details>"), nodes.raw("", form))
    found = picture("chapters/x", tree, builder(tmp_path))
    assert found == ("_images/x.webp", "a < b")
    assert (tmp_path / "_images" / "x.webp").read_bytes() == file.getvalue()
