"""Topics: their sizes and their words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stickbreak import _core, checks
from stickbreak.plot import canvas
from stickbreak.result.topic_fit import TopicFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def topics(
    fit: TopicFit,
    vocabulary: Sequence[str] | None = None,
    *,
    n_topics: int = 20,
    n_words: int = 6,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the fraction of all words in each topic, and label it with its most probable words.

    Parameters
    ----------
    fit : TopicFit
        The fit.
    vocabulary : sequence of str, optional
        The words of the columns, as in `TopicFit.top_words`.
    n_topics : int
        Maximum number of topics to show, at least 1; the largest topics are shown.
    n_words : int
        Number of words per label, at least 1.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A bar for each topic, the largest at the top: its expected fraction of the words of the fit.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> counts = np.array([[4, 1, 0], [3, 2, 0], [0, 0, 5]])
    >>> fit = sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), counts, sb.Full(max_passes=5, tol=0))
    >>> len(sb.plot.topics(fit, ["tree", "leaf", "sea"]).patches)
    2
    """
    words = _checked(fit).top_words(vocabulary, checks.integer("n_words", n_words, minimum=1))
    n_topics = checks.integer("n_topics", n_topics, minimum=1)
    drawn = canvas.axes(ax)
    shares = fit.counts / fit.counts.sum()
    shown = np.argsort(-shares, kind="stable")[:n_topics].tolist()
    drawn.barh(range(len(shown)), shares[shown], color=[canvas.colour(k) for k in shown])
    canvas.label_lines(drawn, [f"{k}: {' '.join(map(canvas.text, words[k]))}" for k in shown])
    drawn.set_xlabel("share of all words")
    return drawn


def topic(
    fit: TopicFit,
    number: int,
    vocabulary: Sequence[str] | None = None,
    *,
    n_words: int = 15,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the most probable words of one topic, with their fraction of all words.

    Parameters
    ----------
    fit : TopicFit
        The fit.
    number : int
        The topic, from 0.
    vocabulary : sequence of str, optional
        The words of the columns, as in `TopicFit.top_words`.
    n_words : int
        Number of words, at least 1.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A bar for each word, the most probable at the top: its probability in the topic (`TopicFit.topics`). A mark
        shows its fraction of all words of the fit. A bar far beyond its mark is a word typical of the topic.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.
    NotSupported
        matplotlib is not installed.
    """
    probabilities = _checked(fit).topics
    number = checks.integer("number", number, minimum=0, maximum=fit.n_topics - 1)
    n_words = checks.integer("n_words", n_words, minimum=1)
    words = fit._words(vocabulary)
    drawn = canvas.axes(ax)
    shown = _core.top_words(fit._state, n_words)[number].tolist()
    overall = _core.word_counts(fit._state)
    drawn.barh(range(len(shown)), probabilities[number, shown], color=canvas.colour(number), label="in the topic")
    share = overall[shown] / overall.sum()
    drawn.plot(share, range(len(shown)), "|", color=canvas.INK, markersize=12, label="in all documents")
    canvas.label_lines(drawn, [canvas.text(words[word]) for word in shown])
    drawn.legend()
    drawn.set_xlabel("probability of the word")
    drawn.set_title(f"topic {number}: {fit.counts[number] / fit.counts.sum():.1%} of all words")
    return drawn


def _checked(fit: object) -> TopicFit:
    return checks.instance("fit", fit, TopicFit, "a TopicFit")
