"""The pages about the package: complete, linked, and true to its docstrings.

What they must hold is read from the running package, which is another way than the one
by which they are made.
"""

import ast
import json
import re
from collections import Counter
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest
import yaml

from tools.bookext.package import formulas, package, public_path
from tools.release import read

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "genaudit"
PAGES = ROOT / "chapters" / "api"
BUILT = ROOT / "_build" / "html"
ROOMS = sorted(
    path.stem
    for path in SOURCE.iterdir()
    if not path.name.startswith("_") and path.suffix in ("", ".py")
)
ANCHOR = re.compile(r'<dt class="sig sig-object py" id="([^"]+)"')


def built(name):
    page = BUILT / name
    if not page.exists():
        pytest.fail("the book is not built: run `make book`")
    return page.read_text(encoding="utf8")


def page(room):
    return built(f"chapters/api/{room}.html")


def modules(room):
    """A room, or its parts where each has names of its own."""
    parts = sorted((SOURCE / "exercises").glob("[a-z]*.py"))
    inside = [f"exercises.{part.stem}" for part in parts]
    names = inside if room == "exercises" else [room]
    return [import_module(f"genaudit.{name}") for name in names]


def offered(module):
    """The public names of a module, methods too; no numbers that exercises try."""
    source = Path(module.__file__).read_text(encoding="utf8")
    assigned = set(re.findall(r"(?m)^(?!__all__)([A-Za-z]\w*)(?:, \w+)* = ", source))
    for name, value in vars(module).items():
        if hasattr(module, "__all__"):
            own = name in module.__all__
        elif isinstance(value, FunctionType | type):
            own = value.__module__ == module.__name__
        else:
            own = name in assigned and ".exercises." not in module.__name__
        if own and not name.startswith("_"):
            yield f"{module.__name__}.{name}"
            if isinstance(value, type):
                yield from (f"{module.__name__}.{name}.{m}" for m in methods(value))


def methods(kind):
    for name, member in vars(kind).items():
        if isinstance(member, FunctionType | property | cached_property):
            if not name.startswith("_") or name == "__call__":
                yield name


def faults(html, names):
    """Names that a page lacks, has twice or has too much."""
    found, wanted = Counter(ANCHOR.findall(html)), Counter(names)
    return sorted(((found - wanted) + (wanted - found)).elements())


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_is_on_its_page_once(room):
    names = [name for module in modules(room) for name in offered(module)]
    assert names
    assert faults(page(room), names) == []


def test_a_missing_a_double_and_a_surplus_name_are_seen():
    html, names = page("latent"), list(offered(modules("latent")[0]))
    one = "genaudit.latent.FiniteModel.posterior"
    line = f'<dt class="sig sig-object py" id="{one}"'
    assert html.count(line) == 1
    assert faults(html.replace(line, ""), names) == [one]
    assert faults(html + line, names) == [one]
    assert faults(html, [name for name in names if name != one]) == [one]


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_leads_to_its_lines_at_the_release(room):
    stamp = read(ROOT)
    home = re.escape(f"https://github.com/{stamp.repo}/blob/{stamp.tag}/")
    pattern = rf'{ANCHOR.pattern}.*?href="{home}(src/\S+)#L(\d+)-L(\d+)"'
    found = re.findall(pattern, page(room), re.DOTALL)
    assert [name for name, *_ in found] == ANCHOR.findall(page(room))
    for name, file, first, last in found:
        lines = (ROOT / file).read_text(encoding="utf8").splitlines()
        part = "\n".join(lines[int(first) - 1 : int(last)])
        short = name.rpartition(".")[2]
        assert re.search(rf"(?m)^ *(def |class |){short}\b", part), name


def test_the_search_finds_every_name():
    text = built("searchindex.js").removeprefix("Search.setIndex(").removesuffix(")")
    objects = json.loads(text)["objects"]
    known = {f"{home}.{entry[4]}" for home, all_ in objects.items() for entry in all_}
    for room in ROOMS:
        for module in modules(room):
            assert set(offered(module)) <= known


def test_the_overview_has_every_room_and_a_chapter_that_uses_it():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))
    pages = [page for part in toc["parts"] for page in part["chapters"]]
    (listed,) = (page["sections"] for page in pages if "sections" in page)
    rooms = [page["file"].rpartition("/")[2] for page in listed]
    assert sorted(rooms) == ROOMS
    overview = (PAGES / "index.md").read_text(encoding="utf8")
    rows = re.findall(r"(?m)^\| \[`(\w+)`\]\((\w+)\.md\).*\]\((\S+)\) \|$", overview)
    assert [row[:2] for row in rows] == [(room, room) for room in rooms]
    for room, _, chapter in rows:
        assert f"]({chapter})" in (PAGES / f"{room}.md").read_text(encoding="utf8")
        used = (PAGES / chapter).read_text(encoding="utf8")
        imports = rf"genaudit\.{room}\b|from genaudit import [^\"]*\b{room}\b"
        assert re.search(imports, used), (room, chapter)


# What becomes of a docstring


def test_names_in_docstrings_and_types_become_links():
    html = page("sampler")
    for name in (
        "process.html#genaudit.process.ddpm_step",
        "#genaudit.sampler.ddpm_path",
    ):
        assert re.search(
            rf'<a class="reference internal" href="{name}"[^>]*><code', html
        )
    assert 'href="schedule.html#genaudit.schedule.Schedule"' in html


def test_a_name_is_read_in_the_scope_that_mentions_it():
    sampler = package()["sampler.ddim_path"]
    assert (
        public_path(sampler, "Schedule.visits") == "genaudit.schedule.Schedule.visits"
    )
    assert public_path(sampler, "process.ddpm_step") == "genaudit.process.ddpm_step"
    audit = package()["audit.forward_jump"].final_target
    assert public_path(audit, "Report") == "genaudit.audit.Report"
    assert public_path(audit, "forward_jump") == "genaudit.audit.forward_jump"
    for unknown in (
        "Tensor",
        "int",
        "schedule",
        "no_such_name",
        "Schedule.no_such_name",
    ):
        assert public_path(sampler, unknown) is None


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("x_t = sqrt(abar_t) x_0", "x<t> = √(ᾱ<t>) x<0>"),
        ("q(x_{t-1} | x_t)", "q(x<t−1> | x<t>)"),
        ("alpha-bar_t of alpha_bar_1", "ᾱ<t> of ᾱ<1>"),
        ("beta_1 + eps, -log p - 1", "β<1> + ε, −log p − 1"),
        ("a >= b -> c <= d", "a ≥ b → c ≤ d"),
        ("cos^2(pi/2 t), V^L, M^-a", "cos^2^(π/2 t), V^L^, M^−a^"),
        ("C^(b/(a+b)) 2^(k - 1)", "C^b/(a+b)^ 2^k − 1^"),
        # Names of arguments, words and dashes stay.
        ("alpha_bar, scale_m, q_mean", "alpha_bar, scale_m, q_mean"),
        ("beta-tilde, non-negative -- pi", "beta-tilde, non-negative -- pi"),
        ("the scale_m M", "the scale_m M"),
    ],
)
def test_formulas(text, html):
    marks = {"subscript": "<{}>", "superscript": "^{}^", "#text": "{}"}
    nodes = formulas(text)
    assert "".join(marks[n.tagname].format(n.astext()) for n in nodes) == html


# What docstrings must say


def says(node):
    return "ValueError" in (ast.get_docstring(node) or "")


def raises(function):
    calls = [n.func for n in ast.walk(function) if isinstance(n, ast.Call)]
    return any(
        ast.unparse(each).startswith(("ValueError", "_check.")) for each in calls
    )


def silent(tree):
    """What raises ValueError, where neither it nor the whole it is in says so."""
    if says(tree):
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not says(node):
            inside = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef)]
            for each in [] if node.name.startswith("_") else inside:
                hidden = each.name.startswith("_") and each.name != "__init__"
                if raises(each) and not hidden and not says(each):
                    yield each.name


@pytest.mark.parametrize("room", [path.name for path in SOURCE.glob("[a-z]*.py")])
def test_whatever_raises_says_so(room):
    assert list(silent(ast.parse((SOURCE / room).read_text(encoding="utf8")))) == []


def test_silence_about_an_error_is_seen():
    function = "def f(x):\n  'Half of x.'\n  _check.finite('x', x)\n"
    thrown = function.replace("_check.finite('x', x)", "raise ValueError(x)")
    method = "class A:\n " + function.replace("\n", "\n ")
    for code in (function, thrown, method):
        assert list(silent(ast.parse(code))) == ["f"]
        assert list(silent(ast.parse(f"'Or ValueError.'\n{code}"))) == []
        told = code.replace("of x", "of x, or ValueError")
        assert list(silent(ast.parse(told))) == []
