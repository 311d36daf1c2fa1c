"""Numbers as they stand in a sentence, in a formula, in an output and in code."""

import ast
import re
from decimal import ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from .markdown import FENCE, INLINE_CODE, MATH

NUMBER = re.compile(
    r"(?<![\w.])(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?:[eE][-+]?\d+)?"
)
SIGN = re.compile(r"(?<![\w)\]}.·])-$")
PER_CENT = re.compile(r"\s*(%|per cent|percent)")
# Commands after which a minus is a sign; after any other it is a difference.
RELATION = (
    r"approx|simeq|sim|le|leq|lt|ge|geq|gt|ne|neq|ll|gg|equiv|propto|in|to|mapsto"
    r"|times|cdot|pm|mp|quad|qquad|Rightarrow|Longrightarrow|implies|iff|left|big|Big"
)


class Number(NamedTuple):
    """A number in a text, with its digits as they stand there."""

    value: Decimal
    per_cent: bool
    context: str

    @property
    def name(self) -> str:
        """The number in one spelling: -1234.5, 4.04e-5, 52%."""
        return f"{spell(self.value)}{'%' if self.per_cent else ''}"

    @property
    def is_decimal(self) -> bool:
        """Whether it has a point or an exponent."""
        return self.value.as_tuple().exponent != 0

    @property
    def significant_digits(self) -> int:
        """How many digits it states, leading zeros aside."""
        return len(self.value.as_tuple().digits) if self.value else 1

    def rounds(self, printed: Decimal) -> bool:
        """Whether it is the correct rounding, sign included, of a printed number.

        A printed number that ends in a 5 at the very place does not tell which way the
        full value rounds, so it proves nothing.
        """
        return any(_rounds(value, printed) for value in self._readings())

    def equals(self, given: Decimal) -> bool:
        """Whether it is a given number, in whatever spelling."""
        return given in self._readings()

    def _readings(self) -> list[Decimal]:
        """52 per cent is also 0.52."""
        return [self.value, self.value.scaleb(-2)] if self.per_cent else [self.value]


def spell(value: Decimal) -> str:
    """Return a number's text: an exponent where it was written with one."""
    return str(value).replace("E", "e").replace("e+", "e")


def _rounds(value: Decimal, printed: Decimal) -> bool:
    place = value.as_tuple().exponent
    if printed.as_tuple().exponent > place:
        return False
    unit = Decimal(1).scaleb(place)
    tie = abs(printed - value) * 2 == unit
    return not tie and printed.quantize(unit, ROUND_HALF_EVEN) == value


def in_prose(markdown: str) -> list[Number]:
    """Return the numbers that a Markdown text states."""
    return in_text(plain(markdown))


def in_text(text: str) -> list[Number]:
    """Return the numbers in a plain text."""
    found = []
    for match in NUMBER.finditer(text):
        start, end = match.span()
        sign = "-" if SIGN.search(text[max(0, start - 2) : start]) else ""
        value = Decimal(sign + match[0].replace(",", ""))
        context = " ".join(text[max(0, start - 40) : end + 25].split())
        found.append(Number(value, bool(PER_CENT.match(text, end)), context))
    return found


def in_code(tree: ast.AST) -> set[Decimal]:
    """Return the numbers written in code, `-2` among them as -2 and as 2."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=int() | float() as value):
                found.add(Decimal(repr(value + 0)))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
                if isinstance(value, int | float):
                    found.add(-Decimal(repr(value + 0)))
    return found


def plain(markdown: str) -> str:
    """Return a Markdown text without code, links' targets, tags and LaTeX scripts."""
    text = INLINE_CODE.sub(" ", FENCE.sub(" ", markdown))
    text = re.sub(r"<!--.*?-->|<[^>\s][^>]*>", " ", text, flags=re.DOTALL)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", text)
    text = re.sub(r"\[[^\]]*\]\([^)]*references\.\w+#ref-[^)]*\)", " ", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"https?://\S+", " ", text)
    text = re.sub(r"\bequations? \(\d+\)", " ", text)
    text = MATH.sub(lambda match: f" {_plain_formula(match[0].strip('$'))} ", text)
    text = text.replace("\N{MINUS SIGN}", "-").replace(r"\%", "%")
    text = re.sub(r"(?<=\d)\s*\N{EN DASH}\s*(?=\d)", " ", text)  # a range
    return text.replace("\N{EN DASH}", "-")


def _plain_formula(tex: str) -> str:
    """Return a formula with its numbers and signs, its scripts and commands gone."""
    tex = re.sub(r"\\(tag|label|hspace|vspace|begin|end)\*?\{[^}]*\}", " ", tex)
    tex = re.sub(r"\\\\(\[[^\]]*\])?", " ", tex)
    tex = tex.replace("{,}", ",").replace(r"\%", "%")
    tex = re.sub(r"(?<=\d)\\[,;](?=\d)", "", tex)
    tex = re.sub(r"\\[,;:! ]|[&~]", " ", tex)
    power = r"\s*\\(?:times|cdot)\s*10\^(?:\{([-+]?\d+)\}|(\d))"
    tex = re.sub(rf"(?<=\d){power}", r"e\1\2", tex)
    tex = re.sub(r"(?<![\w.])10\^\{(-\d+)\}", r"1e\1", tex)
    while (shorter := re.sub(r"[_^]\s*\{[^{}]*\}", "", tex)) != tex or (
        shorter := re.sub(r"([_^]\s*\{[^{}]*)\{([^{}]*)\}", r"\1\2", tex)
    ) != tex:
        tex = shorter
    tex = re.sub(r"[_^]\s*(\\[A-Za-z]+|\S)", "", tex)
    tex = re.sub(r"\\[dt]?frac\s*(\d)\s*(\d)", r" \1 \2 ", tex)
    tex = re.sub(rf"\\({RELATION})(?![A-Za-z])", " ", tex)
    tex = re.sub(r"\\[A-Za-z]+", "·", tex)
    return tex.replace("{", " ").replace("}", " ")
