"""Words of users and of files on their way to a terminal, which obeys some characters in place of showing them."""

import re

# Control characters, separators of lines, marks that turn the direction of writing for whatever follows, and lone
# surrogates, which no terminal can show.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str, *, breaks: bool = False) -> str:
    r"""Return a text with escapes such as ``\x1b`` in place of what a terminal would obey.

    Everything that may contain words from elsewhere comes through here: errors and warnings, displays, tables, the
    output of commands, progress bars and pictures. A second call changes nothing.

    Parameters
    ----------
    text : str
        The text.
    breaks : bool
        Whether line breaks and tabs stay, as in messages of several lines.

    Returns
    -------
    str
        The text, whose other characters are the same.
    """

    def escaped(found: re.Match[str]) -> str:
        return found[0] if breaks and found[0] in "\n\t" else found[0].encode("unicode_escape").decode("ascii")

    return _OBEYED.sub(escaped, str(text))
