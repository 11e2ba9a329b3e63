"""Numbers as text that no converter reads: with currencies, percent signs, units, and separators of thousands."""

import re
from collections.abc import Iterable

_CODES = "USD EUR GBP JPY CHF CAD AUD NZD CNY INR SEK NOK DKK PLN CZK HUF BRL MXN ZAR RUB TRY KRW SGD HKD"
# The signs of currencies in Unicode, and codes.
_CURRENCY = rf"(?:[$¢-¥֏؋৲৳฿៛₠-⃀﷼﹩＄￠￡￥￦]|{'|'.join(_CODES.split())})"
# Thousands in groups that one character parts, those of India, or none.
_WHOLE = r"(?:\d{1,3}(?:(?P<group>[ ,.'’_\u00a0\u202f])\d{3})(?:(?P=group)\d{3})*|\d{1,2}(?:,\d{2})+,\d{3}|\d+)"
_DIGITS = rf"(?:{_WHOLE}(?:[.,]\d*)?|[.,]\d+)(?:e[+-]?\d+)?"
_SIGN = r"[+\-\u2212\u2013]?"
_UNIT = r"°?[^\W\d_]{1,4}[²³]?\.?"
_NUMERAL = re.compile(
    rf"(?P<open>\()?[<>≤≥≈~]?\s?{_SIGN}(?P<before>{_CURRENCY})?\s?{_SIGN}{_DIGITS}"
    rf"\s?(?P<after>{_CURRENCY}|[%‰°]|(?P<unit>{_UNIT}))?-?(?(open)\))",
    re.IGNORECASE,
)
# Longer text is no number that a person wrote.
_LONGEST = 40
# Digits that count nothing, such as those of a postcode.
_CODE = re.compile(r"0\d+")


def has_decoration(text: str) -> bool:
    """Return whether a text is a number with a currency, a percent sign, or separators of thousands."""
    found = _matched(text)
    return found is not None and found["unit"] is None and any(found[name] for name in ("before", "after", "group"))


def among(words: Iterable[str]) -> list[str]:
    """Return the words that are numbers, whatever stands beside the digits; none if they look like codes.

    A unit is one only if all numbers have it: "12a" and "12b" are numbers of houses.
    """
    found: list[str] = []
    units: set[str] = set()
    for word in words:
        if _CODE.fullmatch(word.strip()):
            return []
        match = _matched(word)
        if match is not None:
            found.append(word)
            units.add((match["unit"] or "").lower())
    return found if len(units) == 1 else []


def _matched(text: str) -> re.Match[str] | None:
    text = text.strip()
    return _NUMERAL.fullmatch(text) if len(text) <= _LONGEST else None
