"""One repository and one release, wherever the book names them."""

import re
import shutil

import pytest

from tests.guards import code
from tests.guards.notebook import CHAPTERS, ROOT, Chapter
from tools import release
from tools.release import Stamp, faults, main, read, stamp

NOT_OURS = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info")
MADE = ("_build", "build", "dist", "mutants")
# A tree with one of each kind.
FEW = ["_config.yml", "CITATION.cff", "CHANGELOG.md", "README.md", "pyproject.toml"]
FEW += ["src/genaudit/__init__.py", "exercises/beta_vae.ipynb"]
FEW += ["chapters/elbo.ipynb", "chapters/gan.ipynb", "chapters/index.md"]
OLD, NEW = read(ROOT), Stamp("jane-doe/audited.book", "v1.20.3")


@pytest.fixture
def tree(tmp_path):
    """A copy of the tree."""
    copy = tmp_path / "tree"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_OURS, *MADE))
    return announced(copy)


@pytest.fixture
def few(tmp_path):
    """A small one."""
    for name in FEW:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return announced(tmp_path)


def announced(tree):
    """The tree with a changelog that speaks of the new release."""
    log = tree / "CHANGELOG.md"
    text = log.read_text(encoding="utf8")
    log.write_text(text.replace("\n## ", f"\n## {NEW.version}\n\n## ", 1), "utf8")
    return tree


def contents(tree):
    return {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def test_all_places_agree():
    assert list(faults(ROOT)) == []


def test_the_badge_of_a_page_and_its_cell_point_at_one_tag():
    notebooks = [*CHAPTERS, *ROOT.glob("exercises/*.ipynb")]
    assert notebooks
    for path in notebooks:
        name = path.relative_to(ROOT).with_suffix("")
        page = ROOT / "_build" / "html" / name.with_suffix(".html")
        if not page.exists():
            pytest.fail("the book is not built: run `make book`")
        badge = rf"/github/(\S+)/blob/([^/\s]+)/{name.as_posix()}\.ipynb"
        badges = set(re.findall(badge, page.read_text(encoding="utf8")))
        installs = re.findall(release.INSTALLS, path.read_text(encoding="utf8"))
        assert badges == set(installs) == {read(ROOT)}, name


def test_a_stamp_reaches_all_places(tree):
    stamp(tree, NEW)
    assert read(tree) == NEW
    assert list(faults(tree)) == []


def test_no_file_names_the_old_address(tree):
    """Or it lies where nobody looks: then it belongs into PLACES or PAGES."""
    before = f"{OLD.repo}@", f"github.com/{OLD.repo}", f"github/{OLD.repo}"
    before += (f"{OLD.owner}.github.io/{OLD.name}", f"{OLD.repo}/{OLD.tag}")
    stamp(tree, NEW)
    for path, content in contents(tree).items():
        found = [text for text in before if text.encode() in content]
        assert not found, f"{path.relative_to(tree)} still has {found}"


def test_nothing_else_moves(tree):
    before = contents(tree)
    stamp(tree, NEW)
    assert contents(tree) != before
    stamp(tree, OLD)
    assert contents(tree) == before


def test_the_same_stamp_again_changes_nothing(few):
    assert stamp(few, NEW)
    after = contents(few)
    assert stamp(few, NEW) == []
    assert contents(few) == after


def test_each_changed_file_is_named_with_what_changed(few):
    before = contents(few)
    lines = dict(line.split(": ") for line in stamp(few, NEW))
    changed = {path for path, text in contents(few).items() if text != before[path]}
    assert set(lines) == {path.relative_to(few).as_posix() for path in changed}
    assert lines["pyproject.toml"].startswith(f"{OLD.version} -> {NEW.version}, ")
    assert f"{OLD.repo} -> {NEW.repo}" in lines["chapters/gan.ipynb"]
    assert f"{OLD.tag} -> {NEW.tag}" in lines["chapters/gan.ipynb"]


LINES = [
    ("_config.yml", "url: https://github.com/{0.repo}"),
    ("_config.yml", "branch: {0.tag}"),
    ("CITATION.cff", 'repository-code: "https://github.com/{0.repo}"'),
    ("CITATION.cff", "version: {0.version}"),
    ("pyproject.toml", 'version = "{0.version}"'),
    ("pyproject.toml", 'Source = "https://github.com/{0.repo}"'),
    ("pyproject.toml", '/{0.repo}/blob/{0.tag}/CHANGELOG.md"'),
    ("pyproject.toml", 'Issues = "https://github.com/{0.repo}/issues"'),
    ("src/genaudit/__init__.py", '__version__ = "{0.version}"'),
    ("README.md", "genaudit @ git+https://github.com/{0.repo}@{0.tag}"),
    ("chapters/gan.ipynb", "genaudit @ git+https://github.com/{0.repo}@{0.tag}"),
    ("exercises/beta_vae.ipynb", "genaudit @ git+https://github.com/{0.repo}@{0.tag}"),
]


@pytest.mark.parametrize(("name", "line"), LINES)
def test_a_place_that_disagrees_is_found_and_mended(few, name, line):
    stamp(few, NEW)
    path, line = few / name, line.format(NEW)
    text = path.read_text(encoding="utf8")
    parts = {NEW.repo: "joe/other", NEW.version: "1.20.4"}
    present = [part for part in parts if part in line]
    assert line in text and present
    for part in present:
        wrong = line.replace(part, parts[part])
        path.write_text(text.replace(line, wrong), "utf8")
        assert any(parts[part] in fault for fault in faults(few))
        stamp(few, NEW)
        assert path.read_text(encoding="utf8") == text


@pytest.mark.parametrize(("name", "line"), LINES[2:])
def test_a_place_that_is_missing_is_found(few, name, line):
    text = (few / name).read_text(encoding="utf8")
    (few / name).write_text(text.replace(line.format(OLD), ""), "utf8")
    assert any(f"{name}: has no" in fault for fault in faults(few))


@pytest.mark.parametrize("line", ["  url: ", "  branch: "])
def test_a_book_without_an_address(few, line):
    text = (few / "_config.yml").read_text(encoding="utf8")
    (few / "_config.yml").write_text(text.replace(line, f"#{line}"), "utf8")
    with pytest.raises(ValueError, match="needs the repository's url and branch"):
        stamp(few, NEW)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("https://github.com/{repo}/issues", None),
        ("https://github.com/{repo}.", None),
        ("https://github.com/{repo}.git", None),
        ("https://github.com/{repo}/blob/{tag}/LICENSE", None),
        ("https://colab.research.google.com/github/{repo}/blob/{tag}/a.ipynb", None),
        ("https://{owner}.github.io/{name}/index.html", None),
        ("https://github.com/{repo}s", "https://github.com/{repo}s"),
        ("https://github.com/{repo}.js", "https://github.com/{repo}.js"),
        ("https://github.com/joe/blob/{tag}/a", "https://github.com/joe/blob/{tag}/a"),
    ],
)
def test_links_follow(few, old, new):
    def link(form, to):
        parts = {"repo": to.repo, "owner": to.owner, "name": to.name, "tag": to.tag}
        return f"See {form.format(**parts)}\n"

    page = few / "chapters" / "index.md"
    page.write_text(link(old, OLD), encoding="utf8")
    stamp(few, NEW)
    assert page.read_text(encoding="utf8") == link(new or old, OLD if new else NEW)


def test_a_link_to_another_release_is_found(few):
    stamp(few, NEW)
    page = few / "chapters" / "index.md"
    page.write_text(f"https://github.com/{NEW.repo}/blob/main/LICENSE", "utf8")
    assert list(faults(few)) == [f"chapters/index.md: has main for {NEW.tag}"]


def test_a_changelog_without_the_release_is_left_to_do(few, monkeypatch, capsys):
    monkeypatch.setattr(release, "ROOT", few)
    assert main(["--repo", NEW.repo, "--tag", "v2.0.0"]) == 1
    assert "left to do: CHANGELOG.md" in capsys.readouterr().out
    assert main(["--repo", NEW.repo, "--tag", NEW.tag]) == 0
    assert "left to do" not in capsys.readouterr().out
    assert main(["--repo", NEW.repo, "--tag", NEW.tag]) == 0
    assert capsys.readouterr().out == "nothing to change\n"


@pytest.mark.parametrize("repo", ["jane", "jane/a/b", "a b/c", "/a", "a/", "-a/b"])
def test_a_repository_that_is_none(repo, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([f"--repo={repo}", "--tag", "v1.0.0"])
    assert f"{repo!r} must be OWNER/NAME" in capsys.readouterr().err


@pytest.mark.parametrize("repo", ["https://github.com/jane/a", "jane/a.git"])
def test_an_address_for_a_repository(repo, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--repo", repo, "--tag", "v1.0.0"])
    assert f"{repo!r} must be" in capsys.readouterr().err


@pytest.mark.parametrize("tag", ["1.0.0", "v1.0", "v1.0.0rc1", "v01.0.0", "main", ""])
def test_a_tag_that_is_none(tag, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--repo", "jane/a", f"--tag={tag}"])
    assert f"{tag!r} must be v and three whole numbers" in capsys.readouterr().err


def test_the_guard_on_setup_cells_works_after_a_stamp(few, monkeypatch):
    stamp(few, NEW)
    paths = sorted(few.glob("chapters/*.ipynb"))
    monkeypatch.setattr(code, "ROOT", few)
    monkeypatch.setattr(code, "CHAPTERS", paths)
    assert [fault for path in paths for fault in code.sets_up(Chapter(path))] == []
    text = paths[1].read_text(encoding="utf8")
    paths[1].write_text(text.replace(f"@{NEW.tag}", f"@{OLD.tag}"), "utf8")
    assert list(code.sets_up(Chapter(paths[1])))
