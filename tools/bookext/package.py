"""The directive `room`: everything public in one module of the package.

griffe reads the source without running it, so that neither torch nor numpy has to be
there to build the book. Napoleon makes lists of a docstring's sections, and Sphinx's
own directives for Python make signatures and entries in the search of it all.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import indent

import griffe
from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.util.docutils import SphinxDirective
from sphinx.util.parsing import nested_parse_to_nodes

ROOT = Path(__file__).parents[2]
LONG_VALUE = 60  # characters; a longer value of a constant says nothing more
NAPOLEON = Config(
    napoleon_use_rtype=False, napoleon_custom_sections=[("Attributes", "params_style")]
)

# What docstrings write in plain letters, for a terminal, and the page as symbols.
GREEK = {"alpha": "α", "beta": "β", "eps": "ε", "abar": "ᾱ"}
GREEK |= {"alpha_bar": GREEK["abar"], "alpha-bar": GREEK["abar"]}
LETTER = rf"\b(?:{'|'.join(GREEK)}|[A-Za-z])"
GROUP = r"\((?:[^()]|\([^()]*\))*\)"
FORMULA = re.compile(
    rf"(?P<base>{LETTER})_(?P<low>\{{[^}}]+\}}|\w)(?!\w)"
    rf"|(?<=[\w)])\^(?P<high>{GROUP}|-?\w+)"
    r"|\b(?:eps|abar|sqrt(?=\()|pi(?=[\s/)]))|<=|>=|->|(?<![\w-])-(?=[\w ])"
)
SIGNS = GREEK | {"sqrt": "√", "pi": "π", "<=": "≤", ">=": "≥", "->": "→", "-": "−"}


@cache
def package() -> griffe.Module:
    """Read the package once."""
    return griffe.load("genaudit", search_paths=[ROOT / "src"])


class Room(SphinxDirective):
    """The docstring of a module, and of all that it offers."""

    required_arguments = 1

    def run(self):
        """Return what Sphinx's directives for Python make of the module."""
        room = package()[self.arguments[0]]
        self.env.note_dependency(str(room.filepath))
        lines = [f".. py:module:: {room.path}", "", *docstring(room)]
        for member in members(room):
            lines += ["", *described(member)]
        lines = "\n".join(lines).splitlines()
        source = StringList(lines, f"docstrings of {room.path}")
        found = nested_parse_to_nodes(self.state, source)
        for part in found:
            for signature in part.findall(addnodes.desc_signature):
                complete(signature, self.config.html_theme_options)
            for text in list(part.findall(nodes.Text)):
                if type(text.parent) in (nodes.paragraph, nodes.inline):
                    text.parent.replace(text, formulas(text))
        return found


def members(of: griffe.Object) -> Iterator[griffe.Object]:
    """What a module or a class offers: public, with a docstring, in source order."""
    for name, member in of.members.items():
        called = not name.startswith("_") or name == "__call__"
        if called and member.is_public and not member.is_module:
            if member.has_docstring:
                yield member


def described(member: griffe.Object) -> Iterator[str]:
    """Lines of reStructuredText that describe a member and what is in it."""
    yield f".. py:{kind(member)}:: {declaration(member)}"
    if member.is_attribute and member.annotation:
        yield f"   :type: {member.annotation}"
    elif member.is_attribute and len(str(member.value)) < LONG_VALUE:
        yield f"   :value: {member.value}"
    body = docstring(member)
    if member.is_class:
        for inner in members(member):
            body += ["", *described(inner)]
    yield ""
    yield from (indent(line, "   ") for line in body)


def kind(member: griffe.Object) -> str:
    """The name of Sphinx's directive for a member."""
    if member.is_class:
        return "class"
    if member.is_function:
        return "method" if member.parent.is_class else "function"
    return "property" if "property" in member.labels else "data"


def declaration(member: griffe.Object) -> str:
    """A member as its source declares it, on one line."""
    if member.is_attribute:
        return member.name
    fields = [each for each in member.members.values() if each.is_attribute]
    if member.is_class and "__init__" not in member.members:  # a named tuple
        fields = [each for each in fields if "property" not in each.labels]
        return f"{member.name}({', '.join(map(field, fields))})"
    return member.signature(return_type=member.is_function)


def field(attribute: griffe.Attribute) -> str:
    """A field of a named tuple as a parameter."""
    value = f" = {attribute.value}" if attribute.value else ""
    return f"{attribute.name}: {attribute.annotation}{value}"


def docstring(member: griffe.Object) -> list[str]:
    """A docstring as lines of reStructuredText, the names in it as links."""

    def link(match: re.Match) -> str:
        goal = None if match[1] in parameters else public_path(member, match[1])
        return f":py:obj:`{match[1]} <{goal}>`" if goal else match[0]

    parameters = member.parameters if member.is_function else ()
    text = re.sub(r"``([\w.]+)``", link, member.docstring.value)
    return GoogleDocstring(text, NAPOLEON).lines()


def public_path(scope: griffe.Object, name: str) -> str | None:
    """Where the pages describe what a name means in the code around an object."""
    first, _, rest = name.partition(".")
    try:
        path = scope.resolve(first)
    except griffe.NameResolutionError:
        path = f"genaudit.{first}"
    return public_paths().get(f"{path}.{rest}" if rest else path)


@cache
def public_paths() -> dict[str, str]:
    """The public path of everything described, by the path of its definition."""
    rooms = [room for room in package().modules.values() if room.is_public]
    rooms += [part for room in rooms for part in room.modules.values()]
    found = {}
    for room in filter(lambda each: each.is_public, rooms):
        for member in members(room):
            found[member.canonical_path] = member.path
            if member.is_class:
                for inner in members(member):
                    found[inner.canonical_path] = f"{member.path}.{inner.name}"
    return found


def complete(signature: addnodes.desc_signature, theme: dict) -> None:
    """Resolve the types of a signature, and lead to the lines that it comes from."""
    room = signature["module"].removeprefix("genaudit.")
    member = package()[f"{room}.{signature['fullname']}"]
    source = member.final_target if member.is_alias else member
    for reference in list(signature.findall(addnodes.pending_xref)):
        goal = public_path(source, reference["reftarget"])
        if goal:
            reference["reftarget"], reference["reftype"] = goal, "obj"
        else:  # of Python or of another package
            reference.parent.replace(reference, reference.children)
    file = source.filepath.relative_to(ROOT).as_posix()
    lines = f"L{source.lineno}-L{source.endlineno}"
    address = f"{theme['repository_url']}/blob/{theme['repository_branch']}/{file}"
    link = nodes.reference("", "source", refuri=f"{address}#{lines}")
    signature += nodes.inline("", "", link, classes=["viewcode-link"])


def formulas(text: str) -> list[nodes.Node]:
    """A text with its indices and powers set as such."""
    parts, end = [], 0
    for match in FORMULA.finditer(text):
        parts.append(nodes.Text(text[end : match.start()]))
        base, low, high = match.group("base", "low", "high")
        if base:
            parts.append(nodes.Text(GREEK.get(base, base)))
            parts.append(nodes.subscript(text=low.strip("{}").replace("-", "−")))
        elif high:
            inner = high[1:-1] if high.startswith("(") else high
            parts.append(nodes.superscript("", "", *formulas(inner)))
        else:
            parts.append(nodes.Text(SIGNS[match[0]]))
        end = match.end()
    return [*parts, nodes.Text(text[end:])]


def setup(app):
    """Register the directive with Sphinx."""
    app.add_directive("room", Room)
