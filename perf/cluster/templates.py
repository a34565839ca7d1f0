"""Words of a site file with names in braces, such as ``--gpus-per-node={gpus}``. Pure: no shell, no ``str.format``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

NAMED = re.compile(r"\{([a-z_]+)\}")


class TemplateError(ValueError):
    """A word that names something that can't be filled in."""


def check_template(word: str, names: Sequence[str]) -> None:
    """Check that a word names only what is known.

    Raises
    ------
    TemplateError
        If it names something else.
    """
    for name in NAMED.findall(word):
        if name not in names:
            known = ", ".join(f"{{{n}}}" for n in names)
            raise TemplateError(f"{word!r:.80} names {{{name}}}; known are {known}")


def fill(words: Sequence[str], values: Mapping[str, str | int]) -> list[str]:
    """Return the words with names replaced by values. Other braces stay: ``span[ptile=4]{x y}`` is the site's own."""
    return [NAMED.sub(lambda match: str(values.get(match[1], match[0])), word) for word in words]
