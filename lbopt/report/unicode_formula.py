"""Formulas for a terminal: the LaTeX that the ledger's claims are written in, as Unicode text of one line."""

from __future__ import annotations

import re
import unicodedata

_FORMULA = re.compile(r"\$([^$]+)\$")
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)

_SMALL = ["alpha", "beta", "gamma", "delta", "epsilon", "eta", "theta", "kappa", "lamda", "mu", "pi", "rho", "sigma"]
_SMALL += ["tau", "phi", "omega"]
_CAPITAL = ["Gamma", "Delta", "Theta", "Lamda", "Pi", "Sigma", "Phi", "Omega"]
_GREEK = {f"\\{name}": unicodedata.lookup(f"GREEK SMALL LETTER {name}") for name in _SMALL}
_GREEK |= {f"\\{name}": unicodedata.lookup(f"GREEK CAPITAL LETTER {name}") for name in _CAPITAL}

#: Commands that stand for a sign or a word. A word gets a space before what it applies to.
_SIGNS = {
    **_GREEK,
    **{"\\varepsilon": _GREEK["\\epsilon"], "\\varphi": _GREEK["\\phi"]},
    **{"\\lambda": _GREEK["\\lamda"], "\\Lambda": _GREEK["\\Lamda"]},
    **{"\\le": " ≤ ", "\\ge": " ≥ ", "\\sim": " ~ ", "\\to": " → ", "\\in": " ∈ ", "\\equiv": " ≡ ", "\\gtrsim": " ≳ "},
    **{"\\pm": " ± ", "\\mid": " | ", "\\cdot": "·", "\\forall": "for all ", "\\infty": "∞", "\\dots": "…"},
    **{"\\lceil": "⌈", "\\rceil": "⌉", "\\lfloor": "⌊", "\\rfloor": "⌋", "\\{": "{", "\\}": "}", "\\|": "|"},
    **{"\\max": " max ", "\\min": " min ", "\\sup": " sup ", "\\log": " log ", "\\limsup": " lim sup ", "\\sum": " Σ "},
    **{"\\bmod": " mod ", "\\gcd": " gcd "},
    **{"\\,": " ", "\\ ": " ", "\\bigl": "", "\\bigr": ""},
}
#: Commands whose argument is shown as it is.
_PLAIN = ("\\mathrm", "\\text", "\\mathbb", "\\mathcal", "\\operatorname")
#: Words that take a subscript before the space.
_WORDS = ("\\max", "\\min", "\\sup", "\\limsup", "\\sum")

_HIGH = str.maketrans("0123456789+-−()nTkp", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿᵀᵏᵖ")
_LOW = str.maketrans("0123456789+-−()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")


def readable(text: str) -> str:
    """Return text with what stands between dollar signs as Unicode."""
    parts = _FORMULA.split(text)
    return "".join(unicode_formula(part) if place % 2 else part for place, part in enumerate(parts))


def unicode_formula(latex: str) -> str:
    """Return a formula as Unicode text of one line; `\\frac{a}{b}` becomes `a/b`, with brackets where needed."""
    shown = _row(_TOKEN.findall(latex))
    shown = re.sub(r"\s*([=<>])\s*", r" \1 ", shown).replace("-", "−")
    shown = re.sub(r" +(?=[)\]},;⌉⌋])", "", re.sub(r"(?<=[(\[{⌈⌊]) +", "", re.sub(r" +", " ", shown)))
    return re.sub(r"(max|min|sup|gcd) (?=[({\[])", r"\1", shown).strip()


def _row(tokens: list[str]) -> str:
    """Show a list of tokens, which is used up."""
    shown = ""
    while tokens:
        shown += _one(tokens)
    return shown


def _one(tokens: list[str]) -> str:
    """Show the first piece of a list of tokens, and take it off."""
    token = tokens.pop(0)
    if token[0] == "\\" and token[-1].isalpha() and tokens[:1] == [" "]:
        tokens.pop(0)  # it only ends the command
    if token == "{":
        return _row(_group(tokens))
    if token == "\\frac":
        above, below = _argument(tokens), _argument(tokens)
        fraction = f"{_bracketed(above)}/{_bracketed(below, products=True)}"
        follows = next((one for one in tokens if one not in ("\\,", " ")), "")
        alone = not follows or follows in "+-=)]}<>,|" or _SIGNS.get(follows, "").startswith(" ")
        return fraction if alone else f"({fraction}) "
    if token == "\\sqrt":
        return f"√{_bracketed(_argument(tokens), products=True)}"
    if token == "\\bar":
        return "".join(f"{letter}\N{COMBINING MACRON}" for letter in _argument(tokens))
    if token in _PLAIN:
        return _argument(tokens).replace("-", "\N{HYPHEN}")
    if token == "^":
        return _script(_argument(tokens), _HIGH, "^")
    if token == "_":
        low = _script(_argument(tokens), _LOW, "_")
        return low + " " * (low[0] == "_" and tokens[:1] != [] and (tokens[0].isalpha() or tokens[0][0] == "\\"))
    if token in _WORDS and tokens[:1] == ["_"]:
        tokens.pop(0)
        return f"{_SIGNS[token].rstrip()}{_script(_argument(tokens), _LOW, '_')} "
    if token.startswith("\\"):
        return _SIGNS[token]
    return token


def _argument(tokens: list[str]) -> str:
    """Show the next argument: a group, or one piece."""
    while tokens[0] == " ":
        tokens.pop(0)
    return _one(tokens).strip()


def _group(tokens: list[str]) -> list[str]:
    """Return the tokens up to the brace that closes the group, and take them off."""
    depth = 1
    for place, token in enumerate(tokens):
        depth += (token == "{") - (token == "}")
        if depth == 0:
            inside = tokens[:place]
            del tokens[: place + 1]
            return inside
    raise ValueError(f"a brace is not closed in '{''.join(tokens)}'")


def _script(text: str, table: dict[int, int], sign: str) -> str:
    """Show a super- or subscript: small signs where Unicode has all of them, else after its sign."""
    if all(ord(letter) in table for letter in text) and (len(text) == 1 or not text.isalpha()):
        return text.translate(table)
    return f"{sign}{text}" if re.fullmatch(r"[\w*\N{HYPHEN}]+|\([^()]*\)", text) else f"{sign}({text})"


def _bracketed(text: str, *, products: bool = False) -> str:
    """Put brackets around a sum or a difference, and around a product if `products`."""
    closed = re.fullmatch(r"\([^()]*\)|\[[^\[\]]*\]|√\w|√\([^()]*\)", text)
    single = re.fullmatch(r"[\w\u0304\u2070-\u209c²³¹ᵀᵏᵖ]*", text)
    short = re.fullmatch(r"\w[\u0304\u2070-\u209c²³¹]*|\d+|\w_\w+", text)
    if closed or short or (single and not products) or (not products and not re.search(r"[ +\-−/]", text)):
        return text
    return f"({text})"
