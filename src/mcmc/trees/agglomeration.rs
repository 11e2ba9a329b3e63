//! Greedy joins of the two most similar trees: Bayesian hierarchical clustering (mathematics 8.9, item 3; Heller &
//! Ghahramani 2005).

use crate::error::{Error, Result};
use crate::mcmc::trees::arena::Arena;
use crate::parallel::{Cancel, map, try_map};
use crate::room::check_room;

/// Maximum number of rows whose pairs are compared. Dissimilarities take 10 bytes each, 1.25 GiB in all.
pub const MOST_ROWS: usize = 1 << 14;
/// Maximum number of trees that are joined by least dissimilarity. Further trees are inserted.
const MOST_ON_TOP: usize = 1 << 11;

/// Number of pairs that one task compares.
const BLOCK: usize = 64;

/// Log dissimilarities of all pairs of trees.
struct TreePairs {
    roots: Vec<u32>,
    /// For tree `i`, the dissimilarities to the trees before it. Values of removed trees are out of date.
    log_d: Vec<Vec<f64>>,
    alive: Vec<bool>,
    /// For tree `i`, a tournament of the `i` trees before it, so that a change of one pair costs O(log n) comparisons.
    /// Position 1 holds the most similar tree, and position `p` the more similar one of positions `2 p` and `2 p + 1`.
    /// Tree `j` itself is at position `i + j`, which is not stored.
    tournaments: Vec<Vec<u16>>,
}

/// Returns the tree at a position of a tournament.
fn tree_at(tournament: &[u16], place: usize) -> usize {
    tournament.get(place).map_or_else(|| place - tournament.len(), |&tree| usize::from(tree))
}

impl TreePairs {
    fn new(arena: &Arena<'_>, roots: Vec<u32>, cancel: &Cancel) -> Result<Self> {
        let row = |i: usize| {
            cancel.check()?;
            roots[..i].iter().map(|&other| arena.log_dissimilarity(other, roots[i])).collect::<Result<Vec<f64>>>()
        };
        let log_d = try_map(roots.len(), row)?;
        let alive = vec![true; roots.len()];
        let mut pairs = Self { tournaments: Vec::new(), alive, log_d, roots };
        pairs.tournaments = map(pairs.roots.len(), |i| pairs.play(arena, i));
        Ok(pairs)
    }

    /// The order of pairs: by dissimilarity, then by the lowest row number in either tree.
    fn key(&self, arena: &Arena<'_>, i: usize, j: usize) -> (f64, u32, u32) {
        let [a, b] = [i, j].map(|tree| arena.node(self.roots[tree]).least);
        (self.log_d[i.max(j)][i.min(j)], a.min(b), a.max(b))
    }

    /// Returns the more similar to tree `i` of the two trees below a position.
    fn nearer(&self, arena: &Arena<'_>, i: usize, tournament: &[u16], place: usize) -> u16 {
        let [a, b] = [2 * place, 2 * place + 1].map(|below| tree_at(tournament, below));
        let b_is_nearer = match (self.alive[a], self.alive[b]) {
            (_, false) => false,
            (false, true) => true,
            (true, true) => self.key(arena, i, b) < self.key(arena, i, a),
        };
        (if b_is_nearer { b } else { a }) as u16
    }

    /// Plays the tournament of tree `i`.
    fn play(&self, arena: &Arena<'_>, i: usize) -> Vec<u16> {
        let mut tournament = vec![0; i];
        for place in (1..i).rev() {
            tournament[place] = self.nearer(arena, i, &tournament, place);
        }
        tournament
    }

    /// Replays the matches that a change of the pair of trees `i` and `j < i` may affect. Between two calls only one
    /// pair of tree `i` may change. Returns the number of comparisons.
    fn replay(&mut self, arena: &Arena<'_>, i: usize, j: usize) -> usize {
        let mut tournament = std::mem::take(&mut self.tournaments[i]);
        let (mut place, mut compared) = (i.midpoint(j), 0);
        while place > 0 {
            let now = self.nearer(arena, i, &tournament, place);
            let before = std::mem::replace(&mut tournament[place], now);
            compared += 1;
            // Tree j does not get beyond this position, neither before nor now.
            if [before, now].iter().all(|&tree| usize::from(tree) != j) {
                break;
            }
            place /= 2;
        }
        self.tournaments[i] = tournament;
        compared
    }

    /// Returns the most similar tree before tree `i`.
    fn nearest(&self, i: usize) -> Option<usize> {
        (i > 0).then(|| tree_at(&self.tournaments[i], 1)).filter(|&j| self.alive[j])
    }

    /// Returns the most similar pair, the earlier tree first; `None` if only one tree is left.
    fn best(&self, arena: &Arena<'_>) -> Option<(usize, usize)> {
        let alive = (0..self.roots.len()).filter(|&i| self.alive[i]);
        let pairs = alive.filter_map(|i| Some((self.nearest(i)?, i)));
        pairs.reduce(|a, b| if self.key(arena, b.0, b.1) < self.key(arena, a.0, a.1) { b } else { a })
    }

    /// Joins two trees. The join takes the place of the first one. Returns the number of comparisons of pairs.
    fn join(&mut self, arena: &mut Arena<'_>, (i, j): (usize, usize)) -> Result<usize> {
        self.roots[i] = arena.join(self.roots[i], self.roots[j])?;
        let (arena, root) = (&*arena, self.roots[i]);
        let others: Vec<usize> = (0..self.roots.len()).filter(|&k| k != i && k != j && self.alive[k]).collect();
        let block = |index: usize| {
            let of_block = &others[index * BLOCK..others.len().min((index + 1) * BLOCK)];
            of_block.iter().map(|&k| arena.log_dissimilarity(root, self.roots[k])).collect::<Result<Vec<f64>>>()
        };
        let found = try_map(others.len().div_ceil(BLOCK), block)?;
        for (&k, log_d) in others.iter().zip(found.into_iter().flatten()) {
            self.log_d[i.max(k)][i.min(k)] = log_d;
        }
        self.tournaments[i] = self.play(arena, i);
        let mut compared = i;
        for &k in others.iter().filter(|&&k| k > i) {
            compared += self.replay(arena, k, i);
        }
        self.alive[j] = false;
        for &k in others.iter().filter(|&&k| k > j) {
            compared += self.replay(arena, k, j);
        }
        Ok(compared)
    }
}

/// Refuses more rows than [`agglomerate`] takes, or than fit in memory.
///
/// # Errors
/// [`Error::InvalidArgument`] for `method`.
pub fn check_number(n: usize) -> Result<()> {
    if n > MOST_ROWS {
        let found = format!("\"bhc\" for {n} rows, whose pairs take {:.1} GB", n as f64 * n as f64 * 5e-9);
        return Err(Error::invalid("method", found, format!("\"incremental\" for more than {MOST_ROWS} rows")));
    }
    // Ten bytes for each of about n^2 / 2 pairs.
    check_room((n * n).div_ceil(2) * 10 / size_of::<f64>(), |size| {
        let found = format!("\"bhc\" for {n} rows, whose pairs take {size}");
        Error::invalid("method", found, "\"incremental\", or fewer rows")
    })
}

/// Joins the two most similar trees until one is left, and returns it.
///
/// # Errors
/// As [`Arena::cache`]; [`Error::InvalidArgument`] for `method` where there are more than [`MOST_ROWS`] trees;
/// [`Error::Cancelled`].
pub fn agglomerate(arena: &mut Arena<'_>, roots: Vec<u32>, cancel: &Cancel) -> Result<u32> {
    check_number(roots.len())?;
    let mut pairs = TreePairs::new(arena, roots, cancel)?;
    while let Some(best) = pairs.best(arena) {
        cancel.check()?;
        pairs.join(arena, best)?;
    }
    let root = pairs.alive.iter().position(|alive| *alive).map_or(0, |index| pairs.roots[index]);
    Ok(root)
}

/// Joins the trees of a forest to one.
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
        root = arena.replace(root, tree)?;
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DenseRows;
    use crate::mcmc::tests::cases::{dirichlet, gaussian, target};
    use crate::mcmc::trees::shape;

    /// Makes the joins by comparing all pairs anew each time.
    fn plainly(arena: &mut Arena<'_>, roots: Vec<u32>) -> u32 {
        let mut pairs = TreePairs::new(arena, roots, &Cancel::default()).expect("definite");
        loop {
            let alive: Vec<usize> = (0..pairs.roots.len()).filter(|&i| pairs.alive[i]).collect();
            let all = alive.iter().flat_map(|&i| alive.iter().filter(move |&&j| j < i).map(move |&j| (j, i)));
            let better = |a: (usize, usize), b: (usize, usize)| {
                if pairs.key(arena, b.0, b.1) < pairs.key(arena, a.0, a.1) { b } else { a }
            };
            let Some((i, j)) = all.reduce(better) else { return pairs.roots[alive[0]] };
            pairs.roots[i] = arena.join(pairs.roots[i], pairs.roots[j]).expect("definite");
            pairs.alive[j] = false;
            for k in alive.into_iter().filter(|&k| k != i && k != j) {
                pairs.log_d[i.max(k)][i.min(k)] =
                    arena.log_dissimilarity(pairs.roots[i], pairs.roots[k]).expect("definite");
            }
        }
    }

    /// One group, several, and many equal rows.
    fn samples() -> [Vec<f64>; 4] {
        let noise = |row: usize| ((row * 7919 + 13) % 1009) as f64 / 1009.0;
        [
            (0..140).map(noise).collect(),
            (0..140).map(|row| noise(row) + 9.0 * ((row / 2) % 5) as f64).collect(),
            (0..140).map(|row| f64::from((row * 5) % 3)).collect(),
            vec![0.25; 140],
        ]
    }

    #[test]
    fn trees_are_those_of_all_pairs() {
        for rows in samples() {
            let target = target(gaussian(2), dirichlet(0.8), &DenseRows::new(&rows[..], 2));
            let process = target.process.start(false).expect("always");
            // In any order of the trees.
            for step in [1, 23] {
                let roots: Vec<u32> = (0..70).map(|row| (row * step) % 70).collect();
                let (mut arena, mut plain) = (Arena::new(&target, &process), Arena::new(&target, &process));
                let root = agglomerate(&mut arena, roots.clone(), &Cancel::default()).expect("definite");
                let expected = plainly(&mut plain, roots);
                assert_eq!(shape(&arena, root).0, shape(&plain, expected).0);
            }
        }
    }

    /// A large cluster is the nearest tree of all others, which need a new nearest tree after each join. Comparing all
    /// pairs would take n^3 / 6 comparisons.
    #[test]
    fn joins_compare_few_pairs() {
        let n = 400;
        for values in [
            samples()[0].repeat(6)[..2 * n].to_vec(),
            vec![0.25; 2 * n],
            (0..2 * n).map(|value| value as f64).collect(),
        ] {
            let target = target(gaussian(2), dirichlet(0.8), &DenseRows::new(&values[..], 2));
            let mut arena = Arena::new(&target, &target.process.start(false).expect("always"));
            let roots = (0..n as u32).collect();
            let mut pairs = TreePairs::new(&arena, roots, &Cancel::default()).expect("definite");
            let mut compared = 0;
            while let Some(best) = pairs.best(&arena) {
                compared += pairs.join(&mut arena, best).expect("definite");
            }
            // Each join replays two matches of at most log2 n + 1 levels for fewer than n other trees, and plays one
            // new tournament.
            assert!(compared <= n * n * (n.ilog2() as usize + 2), "{compared}");
        }
    }
}
