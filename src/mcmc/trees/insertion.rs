//! Insertion of a subtree where the potential gains most, one level at a time (mathematics 8.9, item 4).

use crate::error::Result;
use crate::mcmc::trees::arena::Arena;

/// A level of the way down to where a subtree goes.
#[derive(Debug, Clone, Copy)]
pub struct WayLevel {
    /// The node that the subtree goes below.
    pub node: u32,
    /// The child that it does not go below.
    pub sibling: u32,
    /// ln m of the node with the subtree, nats.
    log_marginal: f64,
}

/// Where a subtree goes.
#[derive(Debug)]
pub struct Way {
    /// The subtree.
    pub subtree: u32,
    /// From the root down.
    pub levels: Vec<WayLevel>,
    /// The node beside which it comes to stand, and ln m of both.
    pub beside: (u32, f64),
}

impl Arena<'_> {
    /// Where `subtree` goes in the tree below `root`, given ln m of both. The smallest of the dissimilarities of the
    /// children to each other and to the subtree decides at each level: on top, into the left child or into the right
    /// one, in this order where some are equal. A tree that is a leaf goes into the subtree instead.
    ///
    /// # Errors
    /// As [`Arena::cache`].
    pub fn way(&self, root: u32, subtree: u32, log_marginal: f64) -> Result<Way> {
        let (root, subtree) = if self.is_leaf(root) { (subtree, root) } else { (root, subtree) };
        let (mut at, mut own) = (root, log_marginal);
        let mut levels = Vec::new();
        while let Some([left, right]) = self.children(at) {
            let marginals = [self.log_marginal_of_both(left, subtree)?, self.log_marginal_of_both(right, subtree)?];
            let apart = self.node(at).log_dissimilarity;
            let to_left = self.log_dissimilarity_given(left, subtree, marginals[0]);
            let to_right = self.log_dissimilarity_given(right, subtree, marginals[1]);
            if apart <= to_left && apart <= to_right {
                break;
            }
            let (next, sibling, both) =
                if to_left <= to_right { (left, right, marginals[0]) } else { (right, left, marginals[1]) };
            levels.push(WayLevel { node: at, sibling, log_marginal: own });
            (at, own) = (next, both);
        }
        Ok(Way { subtree, levels, beside: (at, own) })
    }

    /// The node at the end of a way, with the subtree beside what was there.
    ///
    /// # Errors
    /// As [`Arena::cache`].
    pub fn first(&mut self, way: &Way) -> Result<u32> {
        let (beside, log_marginal) = way.beside;
        self.join_known([beside, way.subtree], log_marginal, [beside, way.subtree])
    }

    /// The node of a level with the subtree, which is below `child` already.
    ///
    /// # Errors
    /// As [`Arena::cache`].
    pub fn next(&mut self, way: &Way, level: WayLevel, child: u32) -> Result<u32> {
        // One row is quicker to add to the old node than its children are to merge.
        let same = if self.is_leaf(way.subtree) { [level.node, way.subtree] } else { [child, level.sibling] };
        self.join_known([child, level.sibling], level.log_marginal, same)
    }

    /// The tree below `root` with `subtree` in it. Neither of them is released.
    ///
    /// # Errors
    /// As [`Arena::cache`].
    pub fn insert(&mut self, root: u32, subtree: u32) -> Result<u32> {
        let log_marginal = self.log_marginal_of_both(root, subtree)?;
        let way = self.way(root, subtree, log_marginal)?;
        let mut top = self.first(&way)?;
        for &level in way.levels.iter().rev() {
            top = self.next(&way, level, top)?;
        }
        Ok(top)
    }
}
