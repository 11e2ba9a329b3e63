//! Insertion of a subtree by greedy descent: at each level to the position of the largest potential (mathematics 8.9,
//! item 4).

use crate::error::Result;
use crate::mcmc::trees::arena::Arena;

/// A level on the path to the position of insertion.
#[derive(Debug, Clone, Copy)]
pub struct WayLevel {
    /// The node on the path.
    pub node: u32,
    /// Its child that is not on the path.
    pub sibling: u32,
    /// ln m of the node with the subtree, nats.
    log_marginal: f64,
}

/// Where a subtree is inserted.
#[derive(Debug)]
pub struct Way {
    /// The subtree.
    pub subtree: u32,
    /// The levels from the root down.
    pub levels: Vec<WayLevel>,
    /// The node that becomes the sibling of the subtree, and ln m of both.
    pub beside: (u32, f64),
}

impl Arena<'_> {
    /// Finds where to insert `subtree` in the tree below `root`, given ln m of both. At each level the smallest of
    /// three dissimilarities decides: of the children to each other (insert on top), of the left child to the subtree,
    /// or of the right child to it; ties go in this order. If the tree is a leaf, it is inserted into the subtree
    /// instead.
    pub fn way(&self, root: u32, subtree: u32, log_marginal: f64) -> Result<Way> {
        let (root, subtree) = if self.is_leaf(root) { (subtree, root) } else { (root, subtree) };
        let (mut node, mut log_marginal_here) = (root, log_marginal);
        let mut levels = Vec::new();
        while let Some([left, right]) = self.children(node) {
            let marginals = [self.log_marginal_of_both(left, subtree)?, self.log_marginal_of_both(right, subtree)?];
            let apart = self.node(node).log_dissimilarity;
            let to_left = self.log_dissimilarity_given(left, subtree, marginals[0]);
            let to_right = self.log_dissimilarity_given(right, subtree, marginals[1]);
            if apart <= to_left && apart <= to_right {
                break;
            }
            let (next, sibling, both) =
                if to_left <= to_right { (left, right, marginals[0]) } else { (right, left, marginals[1]) };
            levels.push(WayLevel { node, sibling, log_marginal: log_marginal_here });
            (node, log_marginal_here) = (next, both);
        }
        Ok(Way { subtree, levels, beside: (node, log_marginal_here) })
    }

    /// Joins the subtree with its new sibling at the end of a path.
    pub fn first(&mut self, way: &Way) -> Result<u32> {
        let (beside, log_marginal) = way.beside;
        self.join_known([beside, way.subtree], log_marginal, [beside, way.subtree])
    }

    /// Rebuilds the node of a level above `child`, which already contains the subtree.
    pub fn next(&mut self, way: &Way, level: WayLevel, child: u32) -> Result<u32> {
        // One row is quicker to add to the old node than its children are to merge.
        let same = if self.is_leaf(way.subtree) { [level.node, way.subtree] } else { [child, level.sibling] };
        self.join_known([child, level.sibling], level.log_marginal, same)
    }

    /// Inserts `subtree` into the tree below `root`. Keeps the nodes of both.
    pub fn insert(&mut self, root: u32, subtree: u32) -> Result<u32> {
        self.insert_with(root, subtree, false)
    }

    /// Inserts `subtree` into the tree below `root`, which no other tree may share. Releases the nodes on the path, so
    /// that many insertions take the memory of one tree.
    pub fn replace(&mut self, root: u32, subtree: u32) -> Result<u32> {
        self.insert_with(root, subtree, true)
    }

    fn insert_with(&mut self, root: u32, subtree: u32, releases: bool) -> Result<u32> {
        let log_marginal = self.log_marginal_of_both(root, subtree)?;
        let way = self.way(root, subtree, log_marginal)?;
        let mut top = self.first(&way)?;
        for &level in way.levels.iter().rev() {
            top = self.next(&way, level, top)?;
            if releases {
                self.release(level.node);
            }
        }
        Ok(top)
    }
}
