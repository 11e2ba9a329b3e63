"""Hashes all numbers of some hundred small fits, to show whether a change of the code changes results.

    python scripts/bits.py --out before.json            # on one build
    python scripts/bits.py --out after.json             # on another
    python scripts/bits.py --compare before.json after.json
    python scripts/bits.py --out eight.json --threads 8    # to compare with one thread
    python scripts/bits.py --against OTHER_PYTHONPATH   # this build and that one, in one go

Every case is a fit made with the public API (`bit_cases.py`), under each instruction set of the machine. Of each, the
hashes of its parts are kept: weights, bound, history, predictions, draws, the saved and loaded fit and so on, but no
times, no share of evaluated pairs, no bytes of files and no words. Files of two machines cannot be compared: other
processors and libraries round differently.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from scipy.sparse import issparse

import bit_cases
import more_bit_cases
import stickbreak as sb
from bit_cases import Case

# Parameters of likelihoods and processes, as in their constructors.
PARAMETERS = """mean mean_precision dof scale shape rate covariance pseudo_counts coefficient successes failures base
    n_components concentration discount truncation""".split()
# Number of rows to predict: enough for several blocks in the smaller cases, few enough to be quick.
N_PREDICTED = 300


def digest(*values: Any) -> str:
    """Return a short hash of numbers, words and arrays."""
    state = hashlib.blake2b(digest_size=8)
    for value in values:
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        if array.dtype == object:
            state.update(repr(value).encode())
            continue
        state.update(f"{array.dtype.str}{array.shape}".encode())
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()


def parts_of(result: Any, rows: Any) -> dict[str, str]:
    """Return the hashes of all parts of a result, by name."""
    if isinstance(result, sb.Trace):
        return parts_of_trace(result, rows)
    if isinstance(result, sb.Hierarchy):
        return parts_of_hierarchy(result)
    answers = answers_of_topics if isinstance(result, sb.TopicFit) else answers_of
    return parts_of_fit(result) | answers(result, rows)


def parts_of_fit(fit: Any) -> dict[str, str]:
    """Return the hashes of the parts that every fit has."""
    parts = {
        "weights": digest(fit.weights, fit.leftover_weight, fit.tail_count),
        "counts": digest(fit.counts),
        "elbo": digest(fit.elbo),
        "stop": digest(fit.stop_reason.value, fit.bound, fit.n_components, fit.n_occupied),
        "history": digest(*history_of(fit)),
        "model": digest(*model_of(fit.model), concentration_of(fit)),
    }
    parts |= {f"components.{name}": digest(values) for name, values in fit.components.items()}
    return parts | {f"estimates.{name}": digest(values) for name, values in fit.point_estimates.items()}


def parts_of_trace(trace: sb.Trace, rows: Any) -> dict[str, str]:
    """Return the hashes of draws and of their predictions."""
    some = rows[:N_PREDICTED]
    parts = {
        "partitions": digest(trace.partitions),
        "log_joint": digest(trace.log_joint),
        "acceptance": digest(*trace.acceptance.values(), *trace.log_ratio.values()),
        "model": digest(*model_of(trace.model)),
        "log_predictive": digest(trace.log_predictive(some, threads=bit_cases.THREADS)),
        "predict": digest(trace.predict(some, threads=bit_cases.THREADS)),
        "similarity": digest(trace.similarity(threads=bit_cases.THREADS)),
    }
    return parts | {f"hyperparameters.{name}": digest(values) for name, values in trace.hyperparameters.items()}


def parts_of_hierarchy(tree: sb.Hierarchy) -> dict[str, str]:
    """Return the hashes of a tree and its cuts."""
    return {
        "joins": digest(tree.joins),
        "log_weights": digest(tree.log_weights),
        "log_potentials": digest(tree.log_potentials),
        "log_dissimilarities": digest(tree.log_dissimilarities),
        "elbo": digest(tree.elbo),
        "cuts": digest(tree.cut("bhc"), tree.cut("map")),
        "model": digest(*model_of(tree.model)),
    }


def history_of(fit: Any) -> Iterator[Any]:
    """The numbers of all passes; reasons of refusals are counted, not read."""
    for record in fit.history:
        yield [record.index, record.n_components, record.proposed, record.accepted]
        yield record.elbo
        for report in record.moves:
            yield report.kind
            yield [report.proposed, report.accepted, *sorted(report.refused.values())]
            yield report.gain


def model_of(model: Any) -> Iterator[Any]:
    """Yield the parameters of a model, including those that followed the data."""
    yield getattr(model, "word_concentration", "none")
    for specification in (getattr(model, "likelihood", None), model.process):
        for name in PARAMETERS:
            value = getattr(specification, name, None)
            yield name
            yield [value.shape, value.rate] if isinstance(value, sb.Gamma) else "none" if value is None else value


def concentration_of(fit: Any) -> Any:
    """Return the concentration of a fit or its posterior."""
    learned = fit.concentration
    return [learned.shape, learned.rate] if isinstance(learned, sb.Gamma) else learned


def answers_of_topics(fit: sb.TopicFit, rows: Any) -> dict[str, str]:
    """Return the hashes of a topic model's predictions."""
    some = rows[:N_PREDICTED]
    return {
        "topics": digest(fit.topics),
        "transform": digest(fit.transform(some, threads=bit_cases.THREADS)),
        "top_words": digest(fit.top_words(n=5)),
        "completion": digest(fit.document_completion(some, seed=5)),
        "coherence": digest(fit.coherence(some)),
    }


def answers_of(fit: sb.Fit, rows: Any) -> dict[str, str]:
    """Return the hashes of a fit's predictions."""
    some = rows[:N_PREDICTED]
    kept = fit.predict_proba(some, sparse=True)
    answers = {
        "predict": digest(fit.predict(some, threads=bit_cases.THREADS)),
        "predict_proba": digest(fit.predict_proba(some, threads=bit_cases.THREADS)),
        "predict_proba sparse": digest(kept.indptr, kept.indices, kept.data),
        "log_predictive": digest(fit.log_predictive(some, threads=bit_cases.THREADS)),
        "log_predictive plug_in": digest(fit.log_predictive(some, plug_in=True, threads=bit_cases.THREADS)),
        "evaluate": digest(fit.evaluate(some, threads=bit_cases.THREADS)),
        "sample": digest(fit.sample(40, seed=5)),
    }
    if not issparse(some) and np.isnan(some).any():
        answers["impute"] = digest(*fit.impute(some, return_variance=True, threads=bit_cases.THREADS))
        answers["sample_missing"] = digest(fit.sample_missing(some, seed=5, threads=bit_cases.THREADS))
    return answers


def parts_of_case(case: Case, folder: Path) -> dict[str, str]:
    """Return the hashes of a case, or the class of the error if it is refused."""
    rows = case.rows
    inputs = (rows.indptr, rows.indices, rows.data) if issparse(rows) else (rows,)
    parts = {"rows": digest(*inputs)}
    try:
        result = case.make()
    except sb.StickbreakError as error:
        return parts | {"refused": type(error).__name__}
    parts |= parts_of(result, rows)
    path = folder / "result.safetensors"
    result.save(path)
    loaded = parts_of(sb.load(path), rows)
    return parts | {f"loaded.{name}": value for name, value in loaded.items() if value != parts[name]}


def all_cases(folder: Path) -> list[Case]:
    """Every case, named by its group; some of them read or write files in `folder`."""
    groups = {**bit_cases.groups(folder), **more_bit_cases.groups(folder)}
    return [Case(f"{group}/{each.name}", each.rows, each.make) for group, cases in groups.items() for each in cases]


def selected(cases: list[Case], words: list[str]) -> Iterator[tuple[str | None, Case]]:
    """Cases with their instruction sets, None for the widest; only those that have one of the words in the name."""
    for narrower in [None, *sb._core.instruction_sets()[:-1]]:
        for case in cases:
            name = case.name if narrower is None else f"{narrower}/{case.name}"
            if not words or any(word in name for word in words):
                yield narrower, Case(name, case.rows, case.make)


def run(words: list[str]) -> dict[str, dict[str, str]]:
    """Return the hashes of all cases."""
    found: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for instructions, case in selected(all_cases(Path(folder)), words):
                sb._core.force_instructions(instructions)
                if case.name in found:
                    raise ValueError(f"two cases are called {case.name}")
                found[case.name] = parts_of_case(case, Path(folder))
        finally:
            sb._core.force_instructions(None)
    return found


def machine() -> dict[str, Any]:
    """Return the properties of the machine on which bits may depend."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    processors = sorted({line.partition(":")[2].strip() for line in lines if line.startswith("model name")})
    return {
        "platform": platform.platform(),
        "processors": processors or [platform.processor()],
        "instruction_sets": sb._core.instruction_sets(),
        "libraries": [f"numpy {np.__version__}", f"scipy {scipy.__version__}"],
    }


def write(path: Path, words: list[str]) -> None:
    """Run all cases and write their hashes, one case a line."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = run(words)
    lines = [f"  {json.dumps(name)}: {json.dumps(parts)}" for name, parts in cases.items()]
    head = f'{{"machine": {json.dumps(machine())},\n "cases": {{\n'
    path.write_text(head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    refused = [name for name, parts in cases.items() if "refused" in parts]
    seconds = time.process_time() - started
    print(f"{len(cases)} cases, {len(refused)} of them refused, {seconds:.0f} CPU seconds: {path}")


def compare(before: Path, after: Path) -> int:
    """Print which cases differ, and in which parts; 1 if any does, 2 if the files cannot be compared."""
    one, other = (json.loads(path.read_text(encoding="utf-8")) for path in (before, after))
    if one["machine"] != other["machine"]:
        print(f"These are of two machines, and cannot be compared:\n{one['machine']}\n{other['machine']}")
        return 2
    first, second = one["cases"], other["cases"]
    different = [name for name in first if name not in second or first[name] != second[name]]
    different += [name for name in second if name not in first]
    for name in different:
        if name in first and name in second:
            pairs = {part: (first[name].get(part), second[name].get(part)) for part in {**first[name], **second[name]}}
            shown = ", ".join(part for part, (a, b) in pairs.items() if a != b)
        else:
            shown = f"only in {before if name in first else after}"
        print(f"{name}: {shown}")
    print(f"{len(different)} of {len({**first, **second})} cases differ")
    return 1 if different else 0


def against(python_path: str, words: list[str]) -> int:
    """Run the cases on this build and on the one of another PYTHONPATH, and compare."""
    with tempfile.TemporaryDirectory() as folder:
        this, that = Path(folder) / "this.json", Path(folder) / "that.json"
        options = [f"--only={word}" for word in words]
        write(this, words)
        command = [sys.executable, __file__, "--out", str(that), *options]
        subprocess.run(command, env=os.environ | {"PYTHONPATH": python_path}, check=True)
        return compare(that, this)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="cases whose name contains WORD")
    parser.add_argument("--threads", type=int, default=1, help="threads of every case that does not say its own")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, metavar="FILE", help="run the cases and write their hashes")
    what.add_argument("--compare", type=Path, nargs=2, metavar="FILE", help="list the cases that differ")
    what.add_argument("--against", metavar="PYTHONPATH", help="compare this build with another one")
    arguments = parser.parse_args()
    bit_cases.THREADS = arguments.threads
    if arguments.compare:
        return compare(*arguments.compare)
    if arguments.against:
        return against(arguments.against, arguments.only)
    write(arguments.out, arguments.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
