"""
Data larger than memory
=======================

A fit reads data in batches. It needs the memory of one batch and of the components, whatever the number of rows.
"""

# %%
# Write rows to a file, piece by piece. With more pieces the file may be larger than memory.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import stickbreak as sb

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.npy"
rng = np.random.default_rng(0)
centres = rng.normal(scale=8, size=(15, 4)).astype(np.float32)
rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(60_000, 4))
for start in range(0, len(rows), 10_000):
    block = rows[start : start + 10_000]
    block[:] = centres[rng.integers(15, size=len(block))] + rng.normal(size=block.shape)
rows.flush()
print(f"{path.stat().st_size / 1e6:.1f} MB")

# %%
# ``Memoized`` reads one batch at a time and updates the components after each. Its bound is exact.
X = np.load(path, mmap_mode="r")
model = sb.Mixture(likelihood=sb.Gaussian())
fit = sb.fit(
    model,
    X,
    sb.Memoized(batches=6, moves=[sb.Birth(), sb.Merge(), sb.Delete()]),
    progress=False,
)
fit.n_occupied

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
sb.plot.n_components(fit, ax=axes[0])
sb.plot.clusters(fit, X, ax=axes[1]).get_legend().remove()
plt.show()


# %%
# Rows that a function makes
# --------------------------
# A function that returns blocks can read a database or a folder of files. The fit calls it once a pass.
def blocks():
    """Yield the rows in pieces."""
    for start in range(0, len(X), 10_000):
        yield np.asarray(X[start : start + 10_000])


in_order = sb.Memoized(
    batches=6, shuffle=False, moves=[sb.Birth(), sb.Merge(), sb.Delete()]
)
again = sb.fit(model, blocks, in_order, progress=False)
again.n_occupied

# %%
# New rows for an old fit
# -----------------------
# ``update`` takes new rows into a fit without reading the old ones.
new = centres[rng.integers(15, size=2000)] + rng.normal(size=(2000, 4)).astype(np.float32)
updated = fit.update(new)
print(f"{fit.counts.sum():.0f} rows before, {updated.counts.sum():.0f} after")
folder.cleanup()
