"""Stamp the repository's address and the release wherever they stand.

    python -m tools.release --repo OWNER/NAME --tag v1.2.0

The badge of a page, the line that installs the package and the citation then name one
repository at one tag. Files are changed as text, so that nothing else in a notebook
moves. The same command stamps the next release; what is right already stays as it is.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
INSTALLS = (
    r"genaudit @ git\+https://github\.com/(?P<repo>[^@\s\"]+)@(?P<tag>[^\\\"\s]+)"
)
INSTALL = "a line that installs the package"
HUB = r"https://github\.com/(?P<repo>[\w.-]+/[\w.-]+)"
SITE = r"https://(?P<owner>[\w-]+)\.github\.io/(?P<name>[\w.-]+)/"
# What the package index shows beside the package.
URLS = {
    "Homepage": SITE,
    "Documentation": SITE + r"chapters/api/index\.html",
    "Source": HUB,
    "Changelog": HUB + r"/blob/(?P<tag>[^/]+)/CHANGELOG\.md",
    "Issues": HUB + "/issues",
}
# Each of these files has each of these lines.
PLACES = [
    ("_config.yml", "url", r"(?m)^  url: https://github\.com/(?P<repo>\S+)$"),
    ("_config.yml", "branch", r"(?m)^  branch: (?P<tag>\S+)$"),
    (
        "CITATION.cff",
        "repository-code",
        r'(?m)^repository-code: "https://github\.com/(?P<repo>[^"]+)"$',
    ),
    ("CITATION.cff", "version", r"(?m)^version: (?P<version>\S+)$"),
    ("pyproject.toml", "version", r'(?m)^version = "(?P<version>[^"]+)"$'),
    *[("pyproject.toml", what, rf'(?m)^{what} = "{at}"$') for what, at in URLS.items()],
    (
        "src/genaudit/__init__.py",
        "__version__",
        r'(?m)^__version__ = "(?P<version>[^"]+)"$',
    ),
    ("README.md", INSTALL, INSTALLS),
    ("chapters/*.ipynb", INSTALL, INSTALLS),
    ("exercises/*.ipynb", INSTALL, INSTALLS),
    ("solutions/*.ipynb", INSTALL, INSTALLS),
]
# Each of these files may link to the repository, its files or its pages.
PAGES = ["*.md", "*.yml", "*.toml", "*.cff", "chapters/*.ipynb", "chapters/*.md"]
PAGES += ["exercises/*", "solutions/*", "src/genaudit/**/*.py"]
PAGES += ["tools/bookext/**/*.py", "tools/bookext/**/*.html"]


class Stamp(NamedTuple):
    """A repository on GitHub and a tag in it."""

    repo: str
    tag: str

    @property
    def owner(self) -> str:
        """Whose repository it is."""
        return self.repo.partition("/")[0]

    @property
    def name(self) -> str:
        """The repository's own name."""
        return self.repo.partition("/")[2]

    @property
    def version(self) -> str:
        """The tag as a Python package has it."""
        return self.tag.removeprefix("v")


def main(words: list[str] | None = None) -> int:
    """Do what the command line asks; 1 if something is left to do by hand."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repo", type=repository, required=True, metavar="OWNER/NAME")
    parser.add_argument("--tag", type=tag, required=True, metavar="vX.Y.Z")
    arguments = parser.parse_args(words)
    changes = stamp(ROOT, Stamp(arguments.repo, arguments.tag))
    for line in changes:
        print(line)
    left = list(faults(ROOT))
    for line in left:
        print(f"left to do: {line}")
    if not changes:
        print("nothing to change")
    return int(bool(left))


def repository(text: str) -> str:
    """Return the text if it names a repository, else say what would."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[\w.-]{1,100}", text, re.ASCII):
        raise argparse.ArgumentTypeError(
            f"{text!r} must be OWNER/NAME as in the repository's address on GitHub, "
            'such as "jane/audited"'
        )
    if text.endswith(".git"):
        raise argparse.ArgumentTypeError(f"{text!r} must be without .git at its end")
    return text


def tag(text: str) -> str:
    """Return the text if it is a tag of a release, else say what would be."""
    number = "(0|[1-9][0-9]*)"
    if not re.fullmatch(rf"v{number}\.{number}\.{number}", text):
        raise argparse.ArgumentTypeError(
            f'{text!r} must be v and three whole numbers, such as "v1.2.0"'
        )
    return text


def read(root: Path) -> Stamp:
    """Return what a tree is stamped with, as the book's configuration says it."""
    text = _text(root / "_config.yml")
    found = [re.search(pattern, text) for _, _, pattern in PLACES[:2]]
    if not all(found):
        raise ValueError("_config.yml: needs the repository's url and branch")
    return Stamp(*[match[1] for match in found])


def stamp(root: Path, new: Stamp) -> list[str]:
    """Stamp a tree; return a line for each file that changed."""
    lines, links = [], _links(read(root))
    for name, before in _files(root):
        after, moved = before, {}
        for pattern in [*_places(name).values(), *links]:
            after = re.sub(pattern, _filled(new, moved), after)
        if after != before:
            (root / name).write_bytes(after.encode())
            what = ", ".join(f"{old} -> {now}" for old, now in moved.items())
            lines.append(f"{name}: {what}")
    return lines


def faults(root: Path) -> Iterator[str]:
    """Say what is missing, and what differs from the book's configuration."""
    right = read(root)
    for name, text in _files(root):
        for what, pattern in _places(name).items():
            if not re.search(pattern, text):
                yield f"{name}: has no {what}"
        for pattern in [*_places(name).values(), *_links(right)]:
            for match in re.finditer(pattern, text):
                for part, found in match.groupdict().items():
                    if found not in (None, getattr(right, part)):
                        yield f"{name}: has {found} for {getattr(right, part)}"
    newest = re.search(r"(?m)^## (\S+)", _text(root / "CHANGELOG.md"))
    if not newest or newest[1] != right.version:
        yield f"CHANGELOG.md: does not begin with what is new in {right.version}"


def _links(old: Stamp) -> list[str]:
    """Patterns of links to a repository, with a tag or without, and to its pages."""
    repo, owner, name = map(re.escape, (old.repo, old.owner, old.name))
    at = r"(?:(?:@|/(?:blob|tree)/)(?P<tag>[\w.-]*\w))?"
    end = r"(?![\w-]|\.(?!git\b)\w)"
    return [
        rf"(?<![\w-])github(?:\.com)?/(?P<repo>{repo}){at}{end}",
        rf"(?<![\w.-])(?P<owner>{owner})\.github\.io/(?P<name>{name}){end}",
    ]


def _places(name: str) -> dict[str, str]:
    """The lines that a file has, each a pattern by what it is."""
    return {what: pattern for glob, what, pattern in PLACES if fnmatch(name, glob)}


def _files(root: Path) -> list[tuple[str, str]]:
    """The names and texts of all files that hold, or may hold, a part of the stamp."""
    globs = [*[glob for glob, _, _ in PLACES], *PAGES]
    paths = {path for glob in globs for path in root.glob(glob) if path.is_file()}
    return [(path.relative_to(root).as_posix(), _text(path)) for path in sorted(paths)]


def _filled(new: Stamp, moved: dict[str, str]) -> Callable[[re.Match], str]:
    """A replacement for a match: its named parts as stamped, and a note of each."""

    def fill(match: re.Match) -> str:
        text = match[0]
        for part, found in reversed(match.groupdict().items()):
            if found not in (None, getattr(new, part)):
                start, end = (at - match.start() for at in match.span(part))
                text = text[:start] + getattr(new, part) + text[end:]
                moved[found] = getattr(new, part)
        return text

    return fill


def _text(path: Path) -> str:
    """A file's content with the ends of its lines as they are."""
    return path.read_bytes().decode()


if __name__ == "__main__":
    sys.exit(main())
