"""HTML pages of one file that need no network: the templates' environment, and figures drawn into the page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup
from matplotlib.figure import Figure

from lbopt.report.figures import COLOURS, GREY, png_of, svg_of


@dataclass(frozen=True, slots=True)
class Picture:
    """A finished figure: file name of the PNG, title, caption, and its bytes as PNG and as SVG."""

    file: str
    title: str
    caption: str
    data: bytes
    svg: bytes

    @classmethod
    def of(cls, figure: Figure, stem: str, title: str, caption: str) -> Picture:
        """Draw the figure in both formats; equal data give equal bytes.

        Parameters
        ----------
        title, caption
            The words above and below the picture on a page.
        """
        return cls(f"{stem}.png", title, caption, png_of(figure), svg_of(figure, stem))

    @property
    def svg_file(self) -> str:
        """File name of the SVG."""
        return self.file.removesuffix("png") + "svg"

    @property
    def files(self) -> dict[str, bytes]:
        """Both files, by name."""
        return {self.file: self.data, self.svg_file: self.svg}

    @property
    def inline(self) -> Markup:
        """The SVG as an element of a page: as wide as its place, in the colours of the page's text and background."""
        text = self.svg.decode("utf-8")
        text = text[text.index("<svg") :]
        head, rest = text[: text.index(">")], text[text.index(">") :]
        head = re.sub(r' (?:width|height|version|xmlns[:\w]*)="[^"]*"', "", head) + ' fill="currentColor"'
        rest = re.sub(r"<metadata>.*?</metadata>", "", rest, flags=re.DOTALL)
        rest = (
            rest.replace("xlink:href", "href").replace("#000000", "currentColor").replace("fill: #ffffff", "fill: none")
        )
        return Markup(head + rest.replace(GREY, "var(--soft)").replace(COLOURS[0].lower(), "var(--line)"))


def files_of(pictures: Iterable[Picture]) -> dict[str, bytes]:
    """Return the files of all pictures, by name."""
    return {name: data for picture in pictures for name, data in picture.files.items()}


def render_page(template: str, **values: Any) -> str:
    """Return the page of a template in this package, as HTML."""
    loader = jinja2.FunctionLoader(lambda name: files("lbopt.report").joinpath(name).read_text("utf-8"))
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, finalize=_unbroken
    )
    return environment.get_template(template).render(**values)


def _unbroken(value: Any) -> Any:
    """Keep a per cent sign in the line of its number; what is copied, such as a command, comes as `Markup`."""
    return value.replace(" %", "\u00a0%") if isinstance(value, str) and not isinstance(value, Markup) else value
