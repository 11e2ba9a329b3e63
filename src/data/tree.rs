//! A binary tree over rows, for hierarchies and guide trees, and its restrictions to some rows. Traversals are not
//! recursive, because heights can reach the number of rows.

/// Marks the absence of a node.
const NONE: u32 = u32::MAX;

/// A binary tree over one or more rows. Node `i < n` is the leaf of row `i`, and join `k` makes node `n + k`. So
/// children come before their parents, and the root is the last node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Children of each inner node.
    joins: Vec<[u32; 2]>,
    /// Parent of each node; [`NONE`] for the root.
    parents: Vec<u32>,
    /// Rows from left to right.
    order: Vec<u32>,
    /// Position of each row in `order`.
    places: Vec<u32>,
}

impl Tree {
    /// Builds the tree of `n - 1` joins over `n` rows; `None` if the joins do not form a tree.
    pub fn new(joins: Vec<[u32; 2]>) -> Option<Self> {
        let n = joins.len() + 1;
        let mut parents = vec![NONE; 2 * n - 1];
        for (k, children) in joins.iter().enumerate() {
            for &child in children {
                let parent = parents[..n + k].get_mut(child as usize)?;
                if *parent != NONE {
                    return None;
                }
                *parent = (n + k) as u32;
            }
        }
        let mut tree = Self { joins, parents, order: Vec::with_capacity(n), places: vec![0; n] };
        let mut open = vec![tree.root()];
        while let Some(node) = open.pop() {
            if let Some([left, right]) = tree.children(node) {
                open.extend([right, left]);
            } else {
                tree.places[node as usize] = tree.order.len() as u32;
                tree.order.push(node);
            }
        }
        Some(tree)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.joins.len() + 1
    }

    /// The root.
    pub fn root(&self) -> u32 {
        (self.parents.len() - 1) as u32
    }

    /// Children of a node; `None` for a leaf.
    pub fn children(&self, node: u32) -> Option<[u32; 2]> {
        Some(self.joins[(node as usize).checked_sub(self.n_rows())?])
    }

    /// Parent of a node; `None` for the root.
    pub fn parent(&self, node: u32) -> Option<u32> {
        Some(self.parents[node as usize]).filter(|&parent| parent != NONE)
    }

    /// Children of the inner nodes, which come after the leaves.
    pub fn joins(&self) -> &[[u32; 2]] {
        &self.joins
    }

    /// Rows from left to right.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Position of a row in [`Tree::order`].
    pub fn place(&self, row: u32) -> u32 {
        self.places[row as usize]
    }

    /// Number of rows below each node.
    pub fn sizes(&self) -> Vec<u32> {
        let mut sizes = vec![1; self.parents.len()];
        for (k, [left, right]) in self.joins.iter().enumerate() {
            sizes[self.n_rows() + k] = sizes[*left as usize] + sizes[*right as usize];
        }
        sizes
    }

    /// Number of edges from the root to each node.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths = vec![0; self.parents.len()];
        for node in (0..self.root() as usize).rev() {
            depths[node] = depths[self.parents[node] as usize] + 1;
        }
        depths
    }

    /// The rows below a node, from left to right.
    pub fn rows_below(&self, node: u32) -> Vec<u32> {
        let mut rows = Vec::new();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            match self.children(node) {
                Some([left, right]) => open.extend([right, left]),
                None => rows.push(node),
            }
        }
        rows
    }
}

/// A tree that can be restricted to any of its rows. A restriction drops the other leaves and contracts nodes that have
/// one child left.
#[derive(Debug, Clone)]
pub struct Restrictions {
    tree: Tree,
    /// `meets[k][i]`: the smallest depth at which neighbours meet in the `2^k` gaps from gap `i` on, where gap `i` is
    /// between positions `i` and `i + 1`.
    meets: Vec<Vec<u32>>,
}

impl Restrictions {
    /// Prepares restrictions of a tree.
    pub fn new(tree: Tree) -> Self {
        let mut gaps = vec![0; tree.joins.len()];
        let (n, depths) = (tree.n_rows(), tree.depths());
        // The rows below a node are consecutive; its children meet in the gap after the last row of the left child.
        let mut last: Vec<u32> = tree.places.clone();
        for (k, [left, right]) in tree.joins.iter().enumerate() {
            gaps[last[*left as usize] as usize] = depths[n + k];
            last.push(last[*right as usize]);
        }
        let mut meets = vec![gaps];
        loop {
            let before = &meets[meets.len() - 1];
            let width = 1 << (meets.len() - 1);
            if before.len() <= width {
                return Self { tree, meets };
            }
            meets.push(before.iter().zip(&before[width..]).map(|(a, b)| *a.min(b)).collect());
        }
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Sorts rows by their positions in the tree, as [`Restrictions::joins`] requires.
    pub fn sort(&self, rows: &mut [u32]) {
        rows.sort_unstable_by_key(|&row| self.tree.places[row as usize]);
    }

    /// Returns the joins of the restriction to `rows`, which are sorted by their positions, in the form of
    /// [`Tree::joins`]: `i` is the leaf of `rows[i]`. Takes O(m) for `m` rows: the restriction is the Cartesian tree of
    /// the depths at which neighbours meet.
    pub fn joins(&self, rows: &[u32]) -> Vec<[u32; 2]> {
        let mut joins = Vec::with_capacity(rows.len().saturating_sub(1));
        // Subtrees from left to right, each with the depth at which it meets its left neighbour.
        let mut open: Vec<(u32, u32)> = Vec::new();
        let join = |open: &mut Vec<(u32, u32)>, joins: &mut Vec<[u32; 2]>| {
            if let (Some((right, _)), Some((left, depth))) = (open.pop(), open.pop()) {
                joins.push([left, right]);
                open.push(((rows.len() + joins.len() - 1) as u32, depth));
            }
        };
        for (leaf, &row) in rows.iter().enumerate() {
            let depth = if leaf == 0 { 0 } else { self.meet(rows[leaf - 1], row) };
            while open.len() > 1 && open[open.len() - 1].1 > depth {
                join(&mut open, &mut joins);
            }
            open.push((leaf as u32, depth));
        }
        while open.len() > 1 {
            join(&mut open, &mut joins);
        }
        joins
    }

    /// Depth of the lowest node above two rows; the first row is to the left.
    fn meet(&self, left: u32, right: u32) -> u32 {
        let (from, to) = (self.tree.place(left) as usize, self.tree.place(right) as usize);
        let level = (to - from).ilog2() as usize;
        self.meets[level][from].min(self.meets[level][to - (1 << level)])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::RngExt;

    use super::*;
    use crate::rng::{Generator, Purpose, permutation, stream};

    /// Builds a random tree by joining two random nodes without a parent, repeatedly.
    pub fn random(n: usize, generator: &mut Generator) -> Tree {
        let mut open = permutation(n as u32, generator);
        let take = |open: &mut Vec<u32>, generator: &mut Generator| {
            let index = generator.random_range(0..open.len());
            open.swap_remove(index)
        };
        let joins = (0..n - 1).map(|k| {
            let pair = [take(&mut open, generator), take(&mut open, generator)];
            open.push((n + k) as u32);
            pair
        });
        Tree::new(joins.collect()).expect("a tree")
    }

    /// The sets of rows below the inner nodes.
    fn sets(rows: &[u32], joins: &[[u32; 2]]) -> Vec<Vec<u32>> {
        let mut all: Vec<Vec<u32>> = rows.iter().map(|&row| vec![row]).collect();
        for [left, right] in joins {
            let mut both = [&all[*left as usize][..], &all[*right as usize]].concat();
            both.sort_unstable();
            all.push(both);
        }
        let mut inner = all.split_off(rows.len());
        inner.sort();
        inner
    }

    proptest! {
        /// The row sets of a restriction are those of the tree, intersected with the rows, without sets of fewer than
        /// two rows.
        #[test]
        fn restrictions_keep_the_sets(n in 1_usize..40, seed in 0_u64..1000, share in 0.0_f64..1.0) {
            let mut generator = stream(seed, Purpose::Start, 0);
            let tree = random(n, &mut generator);
            let all = sets(&(0..n as u32).collect::<Vec<_>>(), tree.joins());
            let mut rows: Vec<u32> = (0..n as u32).filter(|_| generator.random::<f64>() < share).collect();
            let restrictions = Restrictions::new(tree);
            restrictions.sort(&mut rows);
            let found = sets(&rows, &restrictions.joins(&rows));
            let cut = |set: Vec<u32>| set.into_iter().filter(|row| rows.contains(row)).collect::<Vec<_>>();
            let mut expected: Vec<Vec<u32>> = all.into_iter().map(cut).filter(|set| set.len() > 1).collect();
            expected.sort();
            expected.dedup();
            prop_assert_eq!(&found, &expected);
            // Restricting twice equals restricting once to the smaller set.
            let joins = restrictions.joins(&rows);
            let inner = Restrictions::new(Tree::new(joins).unwrap_or_else(|| random(1, &mut generator)));
            let mut few: Vec<u32> = (0..rows.len() as u32).filter(|_| generator.random::<f64>() < 0.5).collect();
            inner.sort(&mut few);
            let mut rows_of_few: Vec<u32> = few.iter().map(|&position| rows[position as usize]).collect();
            let twice = sets(&rows_of_few, &inner.joins(&few));
            restrictions.sort(&mut rows_of_few);
            prop_assert_eq!(twice, sets(&rows_of_few, &restrictions.joins(&rows_of_few)));
        }
    }

    #[test]
    fn foreign_joins_are_no_tree() {
        assert!(Tree::new(vec![]).is_some_and(|tree| tree.root() == 0 && tree.children(0).is_none()));
        assert!(Tree::new(vec![[0, 1], [3, 2]]).is_some());
        for joins in [vec![[0, 0]], vec![[0, 2]], vec![[0, 1], [1, 2]], vec![[0, 1], [3, 9]], vec![[0, 3], [1, 2]]] {
            assert!(Tree::new(joins).is_none());
        }
    }

    /// A tree of 100 000 levels.
    #[test]
    fn tall_trees_need_no_stack() {
        let n = 100_000_u32;
        let joins = (1..n).map(|k| [k, if k == 1 { 0 } else { n + k - 2 }]).collect();
        let tree = Tree::new(joins).expect("a tree");
        assert_eq!(tree.depths()[0], n - 1);
        assert_eq!(tree.sizes()[tree.root() as usize], n);
        assert_eq!((tree.rows_below(n).len(), tree.parent(tree.root())), (2, None));
        let restrictions = Restrictions::new(tree);
        let mut rows: Vec<u32> = (0..n).step_by(2).collect();
        restrictions.sort(&mut rows);
        assert_eq!(restrictions.joins(&rows).len(), rows.len() - 1);
    }
}
