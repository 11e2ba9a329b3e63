//! Greedy joins of the two most similar trees: Bayesian hierarchical clustering (mathematics 8.9, item 3; Heller &
//! Ghahramani 2005).

use crate::error::{Error, Result};
use crate::mcmc::trees::arena::Arena;
use crate::parallel::{Cancel, try_map};

/// Maximum number of rows whose pairs are compared. Dissimilarities take 8 bytes each, 1 GiB in all.
pub const MOST_ROWS: usize = 1 << 14;
/// Maximum number of trees that are joined by least dissimilarity. Others are inserted.
const MOST_ON_TOP: usize = 1 << 11;

/// Pairs that one task compares.
const BLOCK: usize = 64;

/// Log dissimilarities of all pairs of trees.
struct TreePairs {
    roots: Vec<u32>,
    /// Of tree `i` and the trees before it. Those of trees that are gone are old.
    log_d: Vec<Vec<f64>>,
    alive: Vec<bool>,
    /// The most similar tree before each one, where there is one.
    nearest: Vec<usize>,
}

impl TreePairs {
    fn new(arena: &Arena<'_>, roots: Vec<u32>, cancel: &Cancel) -> Result<Self> {
        let row = |i: usize| {
            cancel.check()?;
            roots[..i].iter().map(|&other| arena.log_dissimilarity(other, roots[i])).collect::<Result<Vec<f64>>>()
        };
        let log_d = try_map(roots.len(), row)?;
        let alive = vec![true; roots.len()];
        let mut own = Self { nearest: vec![0; roots.len()], alive, log_d, roots };
        (0..own.roots.len()).for_each(|i| own.find(arena, i));
        Ok(own)
    }

    /// The order of pairs: by dissimilarity, then by least rows.
    fn key(&self, arena: &Arena<'_>, i: usize, j: usize) -> (f64, u32, u32) {
        let [a, b] = [i, j].map(|at| arena.node(self.roots[at]).least);
        (self.log_d[i.max(j)][i.min(j)], a.min(b), a.max(b))
    }

    /// Finds the most similar tree before tree `i`.
    fn find(&mut self, arena: &Arena<'_>, i: usize) {
        let others = (0..i).filter(|&j| self.alive[j]);
        self.nearest[i] = others.reduce(|a, b| self.nearer(arena, i, a, b)).unwrap_or(i);
    }

    fn nearer(&self, arena: &Arena<'_>, i: usize, a: usize, b: usize) -> usize {
        if self.key(arena, i, b) < self.key(arena, i, a) { b } else { a }
    }

    /// The most similar pair, the earlier tree first; `None` where only one tree is left.
    fn best(&self, arena: &Arena<'_>) -> Option<(usize, usize)> {
        let pairs = (0..self.roots.len()).filter(|&i| self.alive[i] && self.nearest[i] != i);
        let best = pairs.reduce(|a, b| {
            let [of_a, of_b] = [a, b].map(|i| self.key(arena, i, self.nearest[i]));
            if of_b < of_a { b } else { a }
        })?;
        Some((self.nearest[best], best))
    }

    /// Joins two trees; their join takes the place of the first one.
    fn join(&mut self, arena: &mut Arena<'_>, (i, j): (usize, usize)) -> Result<()> {
        self.roots[i] = arena.join(self.roots[i], self.roots[j])?;
        self.alive[j] = false;
        let (arena, root) = (&*arena, self.roots[i]);
        let others: Vec<usize> = (0..self.roots.len()).filter(|&k| k != i && self.alive[k]).collect();
        let block = |at: usize| {
            let own = &others[at * BLOCK..others.len().min((at + 1) * BLOCK)];
            own.iter().map(|&k| arena.log_dissimilarity(root, self.roots[k])).collect::<Result<Vec<f64>>>()
        };
        let found = try_map(others.len().div_ceil(BLOCK), block)?;
        for (&k, log_d) in others.iter().zip(found.into_iter().flatten()) {
            self.log_d[i.max(k)][i.min(k)] = log_d;
        }
        self.find(arena, i);
        for &k in others.iter().filter(|&&k| k > i) {
            if self.nearest[k] == i || self.nearest[k] == j {
                self.find(arena, k);
            } else {
                self.nearest[k] = self.nearer(arena, k, self.nearest[k], i);
            }
        }
        Ok(())
    }
}

/// Joins the two most similar trees again and again until one is left; returns it.
///
/// # Errors
/// As [`Arena::cache`]; [`Error::InvalidArgument`] for `method` where there are more than [`MOST_ROWS`] trees;
/// [`Error::Cancelled`].
pub fn agglomerate(arena: &mut Arena<'_>, roots: Vec<u32>, cancel: &Cancel) -> Result<u32> {
    let n = roots.len();
    if n > MOST_ROWS {
        let found = format!("\"bhc\" for {n} rows, whose pairs take {:.1} GB", (n * n / 2) as f64 * 8e-9);
        return Err(Error::invalid("method", found, format!("\"incremental\" for more than {MOST_ROWS} rows")));
    }
    let mut pairs = TreePairs::new(arena, roots, cancel)?;
    while let Some(best) = pairs.best(arena) {
        cancel.check()?;
        pairs.join(arena, best)?;
    }
    let root = pairs.alive.iter().position(|alive| *alive).map_or(0, |at| pairs.roots[at]);
    Ok(root)
}

/// Joins the trees of a forest to one.
///
/// # Errors
/// As [`agglomerate`].
pub fn join_on_top(arena: &mut Arena<'_>, forest: Vec<u32>, cancel: &Cancel) -> Result<u32> {
    if forest.len() <= MOST_ON_TOP {
        return agglomerate(arena, forest, cancel);
    }
    let mut trees = forest.into_iter();
    let mut root = trees.next().unwrap_or(0);
    for (turn, tree) in trees.enumerate() {
        if turn % 64 == 0 {
            cancel.check()?;
        }
        root = arena.insert(root, tree)?;
    }
    Ok(root)
}
