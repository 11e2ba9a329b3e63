"""The Markdown tables of `structure.py`, of one file of results or of two: before and after."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Results = dict[str, Any]
# Held-out densities that differ by no more than this, in nats a row, are equal.
TIE = 0.005
# Starts whose objectives differ by no more than this, in nats, are equal.
GAP = 1.0
PEER_NAMES = {"bic": "BIC's", "bayesian": "the Bayesian mixture's"}


def mean(values: Iterable[float | None] | None) -> float | None:
    found = [value for value in values or () if value is not None]
    return float(np.mean(found)) if found else None


def of_seeds(key: str) -> Callable[[Results], float | None]:
    return lambda one: mean(run[key] for run in one.get("structure") or ())


def of_peer(peer: str, key: str) -> Callable[[Results], Any]:
    return lambda one: (one.get("peers") or {}).get(peer, {}).get(key)


def held_out(one: Results) -> float | None:
    return mean(one.get("held-out"))


def held_out_of(peer: str) -> Callable[[Results], float | None]:
    return lambda one: mean(of_peer(peer, "held_out")(one))


def best(one: Results) -> Results | None:
    """The fit of the highest objective, among all seeds and starts."""
    fits = [*(one.get("structure") or ()), *(one.get("starts") or {}).values()]
    return max(fits, key=lambda fit: fit["objective"]) if one.get("starts") and fits else None


def gap(one: Results) -> float | None:
    """Nats by which the seeds' objectives are below the best known one."""
    top, own = best(one), of_seeds("objective")(one)
    return None if top is None or own is None else top["objective"] - own


def of_best(key: str) -> Callable[[Results], float | None]:
    return lambda one: (best(one) or {}).get(key)


# Heading, format, value. Columns of the first kind change between two files, the others do not.
OWN = (
    ("K", ".3g", of_seeds("k")),
    ("ARI", ".2f", of_seeds("ari")),
    ("joined: K", ".3g", of_seeds("clusters")),
    ("ARI", ".2f", of_seeds("combined_ari")),
    ("held out", ".3f", held_out),
    ("best start: K", ".3g", of_best("k")),
    ("ARI", ".2f", of_best("ari")),
    ("nats above", ".1f", gap),
    ("CPU s", ".2g", of_seeds("seconds")),
)
PEERS = (
    ("BIC: K", "d", of_peer("bic", "k")),
    ("ARI", ".2f", of_peer("bic", "ari")),
    ("held out", ".3f", held_out_of("bic")),
    ("CPU s", ".2g", of_peer("bic", "seconds")),
    ("Bayesian: K", "d", of_peer("bayesian", "k")),
    ("ARI", ".2f", of_peer("bayesian", "ari")),
    ("held out", ".3f", held_out_of("bayesian")),
    ("HDBSCAN: K", "d", of_peer("hdbscan", "k")),
    ("ARI", ".2f", of_peer("hdbscan", "ari")),
)


def written(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def print_table(files: list[Results]) -> None:
    """Values of two files are "before -> after"; peers are those of the last file that has them."""
    headings = [heading for heading, _, _ in OWN + PEERS]
    print("\n| set | n | D | classes | " + " | ".join(headings) + " |")
    print("|---|" + "--:|" * (3 + len(headings)))
    for name in dict.fromkeys(name for file in files for name in file):
        versions = [file.get(name, {}) for file in files]
        facts = {key: value for one in versions for key, value in one.items() if value is not None}
        cells = [name, str(facts["n"]), str(facts["columns"]), str(facts.get("classes", ""))]
        for _, form, value in OWN:
            cells.append(" → ".join(text for one in versions if (text := written(value(one), form))))
        cells += [written(value(facts), form) for _, form, value in PEERS]
        print("| " + " | ".join(cells) + " |")


def with_peers(file: Results, files: list[Results]) -> Results:
    """The results of a file, with the peers of any of the files."""
    found = {}
    for name, one in file.items():
        peers = [other[name]["peers"] for other in files if other.get(name, {}).get("peers")]
        found[name] = {**one, "peers": peers[-1]} if peers else one
    return found


def print_summary(files: list[Results]) -> None:
    """Of two files, the sets that are in both."""
    titles = ("",) if len(files) == 1 else ("before: ", "after: ")
    for title, file in zip(titles, files, strict=True):
        common = {name: one for name, one in file.items() if all(name in other for other in files)}
        complete = with_peers(common, files)
        print()
        print_aris(title, complete)
        for peer in ("bic", "bayesian"):
            print_comparison(title, complete, peer)
        gaps = {name: value for name, one in complete.items() if (value := gap(one)) is not None}
        far = [f"{name} ({value:.1f})" for name, value in gaps.items() if value > GAP]
        if gaps:
            print(
                f"{title}more than {GAP:g} nat below the best start: {len(far)} of {len(gaps)} sets: {', '.join(far)}"
            )


def print_aris(title: str, file: Results) -> None:
    """Average over the sets that every method ran on, and again over those that also have starts."""
    methods = {
        "default": of_seeds("ari"),
        "joined": of_seeds("combined_ari"),
        "BIC": of_peer("bic", "ari"),
        "Bayesian": of_peer("bayesian", "ari"),
        "HDBSCAN": of_peer("hdbscan", "ari"),
    }
    found = {name: value for name, value in methods.items() if any(value(one) is not None for one in file.values())}
    for more in ({}, {"best start": of_best("ari")}):
        columns = {**found, **more}
        rows = [row for one in file.values() if None not in (row := [value(one) for value in columns.values()])]
        if rows and found:
            texts = (f"{name} {value:.3f}" for name, value in zip(columns, np.mean(rows, axis=0), strict=True))
            print(f"{title}mean ARI of {len(rows)} sets: " + ", ".join(texts))


def print_comparison(title: str, file: Results, peer: str) -> None:
    """Of the sets whose columns do not depend on each other."""
    differences = {
        name: own - theirs
        for name, one in file.items()
        if one["full_rank"] and (own := held_out(one)) is not None and (theirs := held_out_of(peer)(one)) is not None
        if not np.isnan(theirs)
    }
    lower = [f"{name} ({value:.3f})" for name, value in differences.items() if value < -TIE]
    higher = sum(value > TIE for value in differences.values())
    if differences:
        print(
            f"{title}held-out density beside {PEER_NAMES[peer]}: higher on {higher}, lower on {len(lower)} "
            f"of {len(differences)} sets: {', '.join(lower)}"
        )
