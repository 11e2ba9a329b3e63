"""Mistakes in starts, lengths and warnings of chains, for `injected_bugs.py`."""

from __future__ import annotations

from mistakes import Bug, bug
from more_mistakes import python_bug

OF_CHAINS: tuple[Bug, ...] = (
    Bug(
        216,
        "all chains start where the first one does",
        "src/mcmc/start.rs",
        "&self.0[chain % self.0.len()]",
        f"&self.0[if {bug(216)} {{ 0 }} else {{ chain % self.0.len() }}]",
        "tests/sampling/test_starts_of_chains.py",
    ),
    Bug(
        217,
        "chains that are ahead do not wait, and end with the draws that they have made by then",
        "src/mcmc/chain.rs",
        "self.most.load(Ordering::Relaxed).min(self.asked.load(Ordering::Relaxed));",
        f"if {bug(217)} {{ self.most.load(Ordering::Relaxed) }} else {{ "
        "self.most.load(Ordering::Relaxed).min(self.asked.load(Ordering::Relaxed)) };",
        "tests/sampling/test_longer_chains.py",
    ),
    Bug(
        218,
        "advice on chains looks at the first one",
        "python/stickbreak/result/advising_chains.py",
        "np.ascontiguousarray(found, dtype=np.float64) for",
        f"np.ascontiguousarray(found[:1] if {python_bug(218)} else found, dtype=np.float64) for",
        "tests/sampling/test_starts_of_chains.py",
    ),
)
