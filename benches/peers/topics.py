"""stickbreak, tomotopy, gensim and scikit-learn on one corpus, one core and one scorer: held-out words against seconds.

python benches/peers/topics.py --scorer FOLDER/heldout_topics.py --data nips7605 --topics 100 400 --seconds 60

Every contender runs in a process of its own, on one thread, with the same priors: 0.1 for each topic of a document and
0.1 for each word of a topic. Its clock is the CPU time of that process from the corpus in its own format on, start
included; snapshots are not charged. Topics are scored by document completion with `map` proportions, over several
splits of the words of each test document, and compared document by document.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from contenders import print_head

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS")
PRIOR = 0.1
TARGETS = (-7.30, -7.25, -7.21)


def data_folder() -> Path:
    return Path(os.environ.get("STICKBREAK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def corpus(name: str, seed: int) -> tuple[Any, Any]:
    """Return the counts of training and of test documents; a corpus without a split of its own gets 90 % and 10 %."""
    folder = data_folder() / name
    if (folder / "train.npz").exists():
        return tuple(sparse.csr_array(sparse.load_npz(folder / f"{part}.npz")) for part in ("train", "test"))
    import stickbreak as sb

    counts = sb.read_docword(next(folder.glob("docword*.txt.gz")))
    documents = np.bincount(counts.indices, minlength=counts.shape[1])
    often = (documents >= 10) & (documents <= 0.1 * counts.shape[0]) if name == "newsgroups20" else documents > 0
    counts = counts[:, np.flatnonzero(often)]
    counts = counts[np.flatnonzero(np.diff(counts.indptr))]
    order = np.random.default_rng(seed).permutation(counts.shape[0])
    cut = counts.shape[0] * 9 // 10
    return counts[order[:cut]], counts[order[cut:]]


Snapshots = Iterator[tuple[int, float, Callable[[], Any]]]


def stickbreak_runs(counts: Any, k: int, seed: int, seconds: float, options: dict[str, Any]) -> Snapshots:
    """One run a number of passes: what a user who asks for that many gets."""
    import stickbreak as sb

    options = dict(options)
    init, words = options.pop("init", "kmeans++"), sb.Words(restarts=options.pop("restarts", 0))
    model = sb.TopicModel(sb.LatentDirichlet(k, concentration=PRIOR * k), word_concentration=PRIOR)
    passes = 1
    while True:
        begun = time.process_time()
        fit = sb.fit(
            model,
            counts,
            sb.Memoized(max_passes=passes, tol=0, units=words, **options),
            seed=seed,
            init=init,
            threads=1,
        )
        spent = time.process_time() - begun
        yield passes, spent, lambda fit=fit: fit.topics
        if spent > seconds:
            return
        passes = max(passes + 1, passes * 3 // 2)


def tomotopy_runs(counts: Any, k: int, seed: int, seconds: float, _options: dict[str, Any]) -> Snapshots:
    import tomotopy

    model = tomotopy.LDAModel(k=k, alpha=PRIOR, eta=PRIOR, seed=seed)
    model.optim_interval = 0
    for document in range(counts.shape[0]):
        own = slice(counts.indptr[document], counts.indptr[document + 1])
        words = np.repeat(counts.indices[own], counts.data[own].astype(int))
        model.add_doc([str(word) for word in words])
    spent, passes, step = 0.0, 0, 4
    while spent <= seconds:
        begun = time.process_time()
        model.train(step, workers=1)
        spent += time.process_time() - begun
        passes += step

        def topics() -> Any:
            own = np.array([model.get_topic_word_dist(topic) for topic in range(k)])
            out = np.zeros((k, counts.shape[1]))
            out[:, [int(word) for word in model.used_vocabs]] = own
            return out

        yield passes, spent, topics
        step = max(4, passes // 3)


def gensim_runs(counts: Any, k: int, seed: int, seconds: float, _options: dict[str, Any]) -> Snapshots:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    documents = list(Sparse2Corpus(sparse.csc_matrix(counts.T)))
    kept: list[tuple[int, float, Any]] = []
    chunk = -(-counts.shape[0] // 10)

    class Watched(LdaModel):
        steps = 0
        begun = time.process_time()
        idle = 0.0

        def do_mstep(self, *arguments: Any, **named: Any) -> None:
            super().do_mstep(*arguments, **named)
            self.steps += 1
            now = time.process_time()
            if self.steps % 10 == 0:
                passes = self.steps // 10
                if passes in (1, 2, 3, 4, 6) or passes % 8 == 0:
                    kept.append((passes, now - self.begun - self.idle, self.get_topics().astype(float)))
                if now - self.begun - self.idle > seconds:
                    raise TimeoutError
                self.idle += time.process_time() - now

    with contextlib.suppress(TimeoutError):
        Watched(
            documents,
            num_topics=k,
            id2word={word: str(word) for word in range(counts.shape[1])},
            alpha=np.full(k, PRIOR),
            eta=PRIOR,
            chunksize=chunk,
            passes=10_000,
            iterations=100,
            eval_every=None,
            random_state=seed,
        )
    for passes, spent, topics in kept:
        yield passes, spent, lambda topics=topics: topics


def scikit_learn_runs(counts: Any, k: int, seed: int, seconds: float, _options: dict[str, Any]) -> Snapshots:
    from sklearn.decomposition import LatentDirichletAllocation

    passes = 4
    while True:
        begun = time.process_time()
        model = LatentDirichletAllocation(
            k, doc_topic_prior=PRIOR, topic_word_prior=PRIOR, max_iter=passes, evaluate_every=-1, random_state=seed
        )
        model.fit(sparse.csr_matrix(counts))
        spent = time.process_time() - begun
        yield passes, spent, lambda model=model: model.components_
        if spent > seconds:
            return
        passes *= 2


CONTENDERS = {
    "stickbreak": (stickbreak_runs, {}),
    "stickbreak restarts": (stickbreak_runs, {"restarts": 20, "init": "random"}),
    "stickbreak dense": (stickbreak_runs, {"sparsity": None}),
    "tomotopy": (tomotopy_runs, {}),
    "gensim": (gensim_runs, {}),
    "scikit-learn": (scikit_learn_runs, {}),
}


def load_scorer(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location("heldout_topics", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["heldout_topics"] = module
    specification.loader.exec_module(module)
    return module


def run_one(options: argparse.Namespace, name: str) -> None:
    """Run one contender in this process and print a line of JSON for every snapshot."""
    train, test = corpus(options.data, options.seed)
    scorer = load_scorer(options.scorer)
    runs, settings = CONTENDERS[name]
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for passes, spent, topics in runs(train, options.topics[0], options.seed, options.seconds, settings):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        results = [
            scorer.score(topics(), test, alpha=PRIOR, seed=split, method="map") for split in range(options.splits)
        ]
        record = {
            "passes": passes,
            "seconds": spent,
            "score": float(np.mean([result.mean for result in results])),
            "scores": [result.mean for result in results],
            "by_document": np.mean([result.doc_loglik for result in results], axis=0).tolist(),
            "tokens": np.mean([result.doc_tokens for result in results], axis=0).tolist(),
            "megabytes": (peak - base) / 1024,
        }
        print(json.dumps(record), flush=True)


def seconds_to(records: list[dict[str, Any]], target: float, split: int | None = None) -> str:
    """CPU seconds to a score, the mean of all splits or that of one."""
    scores = [record["score"] if split is None else record["scores"][split] for record in records]
    at = next((record["seconds"] for record, score in zip(records, scores, strict=True) if score >= target), None)
    return "-" if at is None else f"{at:.1f}"


def difference(one: dict[str, Any], other: dict[str, Any]) -> tuple[float, float]:
    """Difference of two scores, paired by document, and its standard error; nats a word."""
    gaps, tokens = np.subtract(one["by_document"], other["by_document"]), np.array(one["tokens"])
    mean, n = gaps.sum() / tokens.sum(), len(gaps)
    return mean, float(np.sqrt(n / (n - 1) * np.sum((gaps - mean * tokens) ** 2)) / tokens.sum())


def show(k: int, name: str, records: list[dict[str, Any]]) -> None:
    times, of_first = (" ".join(seconds_to(records, target, split) for target in TARGETS) for split in (None, 0))
    last = records[-1]
    a_pass = (last["seconds"] - records[0]["seconds"]) / max(1, last["passes"] - records[0]["passes"])
    print(
        f"K = {k:4} {name:19} seconds to {TARGETS}: {times:>15}, split 0: {of_first:>15}; {a_pass:6.2f} s a pass; "
        f"best {max(record['score'] for record in records):.4f}, "
        f"split 0: {max(record['scores'][0] for record in records):.4f}; {last['megabytes']:.0f} MB",
        flush=True,
    )


def compare(options: argparse.Namespace, k: int, found: dict[str, Any]) -> None:
    """Run what is not among what was `found`, and add it."""
    one_thread = os.environ | dict.fromkeys(THREADS, "1")
    for name in [name for name in options.contenders if name not in found]:
        arguments = ["--scorer", options.scorer, "--data", options.data, "--topics", k, "--seed", options.seed]
        arguments += ["--seconds", options.seconds, "--splits", options.splits, "--contender", name]
        command = [sys.executable, __file__, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=one_thread)
        records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0:
            print(f"{name}: {done.stderr.strip().splitlines()[-1] if done.stderr else done.returncode}", flush=True)
        if records:
            found[name] = records
            show(k, name, records)
    best = {name: max(records, key=lambda record: record["score"]) for name, records in found.items()}
    for name, record in best.items():
        for other in (other for other in best if not other.startswith("stickbreak")):
            if name.startswith("stickbreak"):
                mean, error = difference(record, best[other])
                print(
                    f"  {name} less {other}, the best of each, paired by document: {mean:+.4f} ({error:.4f})",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scorer", type=Path, required=True, help="the file heldout_topics.py")
    parser.add_argument("--data", default="nips7605", help="a folder of the data: nips7605, kos, ap, newsgroups20")
    parser.add_argument("--topics", type=int, nargs="+", default=[100])
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds of the longest run")
    parser.add_argument("--splits", type=int, default=5, help="splits of the words of each test document")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=list(CONTENDERS))
    parser.add_argument("--contender", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument(
        "--json", type=Path, help="where everything that was measured goes; what is there already is not run again"
    )
    options = parser.parse_args()
    if options.contender:
        run_one(options, options.contender)
        return
    known = options.json is not None and options.json.exists()
    found: dict[str, Any] = json.loads(options.json.read_text(encoding="utf-8")) if known else {}
    print_head()
    print(f"load before {os.getloadavg()[0]:.1f}", flush=True)
    for k in options.topics:
        compare(options, k, found.setdefault(str(k), {}))
        if options.json:
            options.json.write_text(json.dumps(found), encoding="utf-8")
    print(f"load after {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
