//! Incremental Bayesian hierarchical clustering: one row after another (mathematics 8.9, item 5; Lee & Choi 2014).

use std::collections::VecDeque;

use crate::error::Result;
use crate::mcmc::trees::arena::Arena;
use crate::parallel::Cancel;

/// Number of times that a subtree may be removed again. Without a limit, splits and insertions could alternate for
/// ever.
const MOST_RETURNS: u8 = 10;

/// Returns the tree most similar to a subtree, the first one if several are equally similar: its index, ln m of both,
/// ln d.
fn nearest(arena: &Arena<'_>, forest: &[u32], subtree: u32) -> Result<Option<(usize, f64, f64)>> {
    let mut best: Option<(usize, f64, f64)> = None;
    for (index, &root) in forest.iter().enumerate() {
        let log_marginal = arena.log_marginal_of_both(root, subtree)?;
        let log_dissimilarity = arena.log_dissimilarity_given(root, subtree, log_marginal);
        if best.is_none_or(|(.., least)| log_dissimilarity < least) {
            best = Some((index, log_marginal, log_dissimilarity));
        }
    }
    Ok(best)
}

/// Inserts the nodes of a queue into a forest. If an insertion raises ln d of a tree's root above zero, the tree is
/// taken apart along the insertion path, and its pieces return to the queue.
///
/// # Errors
/// As [`Arena::cache`]; [`crate::Error::Cancelled`].
pub fn incremental(arena: &mut Arena<'_>, forest: &mut Vec<u32>, nodes: &[u32], cancel: &Cancel) -> Result<()> {
    let mut queue: VecDeque<u32> = nodes.iter().copied().collect();
    let mut returns = vec![0_u8; arena.target().n_rows()];
    let mut turn = 0_usize;
    while let Some(subtree) = queue.pop_front() {
        turn += 1;
        if turn.is_multiple_of(64) {
            cancel.check()?;
        }
        let Some((index, log_marginal, _)) = nearest(arena, forest, subtree)?.filter(|(.., log_d)| *log_d <= 0.0)
        else {
            forest.push(subtree);
            continue;
        };
        let stays = returns[arena.node(subtree).least as usize] >= MOST_RETURNS;
        let way = arena.way(forest[index], subtree, log_marginal)?;
        let mut top = arena.first(&way)?;
        let mut apart = !stays && arena.node(top).log_dissimilarity > 0.0;
        let mut pieces = Vec::new();
        if apart {
            arena.release(top);
            (top, pieces) = (way.subtree, vec![way.beside.0]);
        }
        for &level in way.levels.iter().rev() {
            if apart {
                pieces.push(level.sibling);
            } else {
                let next = arena.next(&way, level, top)?;
                if !stays && arena.node(next).log_dissimilarity > 0.0 {
                    apart = true;
                    arena.release(next);
                    pieces.push(level.sibling);
                } else {
                    top = next;
                }
            }
            arena.release(level.node);
        }
        forest[index] = top;
        for piece in pieces {
            let count = &mut returns[arena.node(piece).least as usize];
            *count = count.saturating_add(1);
            queue.push_back(piece);
        }
    }
    Ok(())
}

/// Builds a forest of one-on-top trees: each row in turn is joined on top of the nearest tree if ln d is at most zero,
/// and otherwise starts a new tree.
///
/// # Errors
/// As [`Arena::cache`]; [`crate::Error::Cancelled`].
pub fn on_top_of_nearest(arena: &mut Arena<'_>, rows: &[u32], cancel: &Cancel) -> Result<Vec<u32>> {
    let mut forest: Vec<u32> = Vec::new();
    for (turn, &row) in rows.iter().enumerate() {
        if turn % 64 == 0 {
            cancel.check()?;
        }
        match nearest(arena, &forest, row)? {
            Some((index, log_marginal, log_d)) if log_d <= 0.0 => {
                forest[index] = arena.join_known([forest[index], row], log_marginal, [forest[index], row])?;
            }
            _ => forest.push(row),
        }
    }
    Ok(forest)
}
