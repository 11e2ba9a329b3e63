//! Two clusters between which rows are divided: the basis of split-merge proposals.

use crate::error::Result;
use crate::mcmc::{ChainState, Turn};
use crate::process::ProcessState;

/// The side of a row that is in neither cluster yet.
const UNDEALT: u8 = 2;

/// Two clusters, each with an anchor that never leaves it, and rows that are assigned to one of them.
#[derive(Debug, Clone)]
pub(super) struct TwoClusters {
    /// Caches of both clusters, consecutively.
    caches: Vec<f64>,
    sizes: [usize; 2],
    /// The rows, in the order in which they are assigned, and the side of each.
    rows: Vec<u32>,
    sides: Vec<u8>,
}

impl TwoClusters {
    /// Creates two clusters of one anchor each, with all rows unassigned.
    pub fn new(turn: &Turn<'_>, anchors: [u32; 2], rows: Vec<u32>) -> Result<Self> {
        let sides = vec![UNDEALT; rows.len()];
        let mut pair = Self { caches: turn.target.empty.repeat(2), sizes: [0; 2], rows, sides };
        for (side, anchor) in anchors.into_iter().enumerate() {
            pair.change(turn, side, anchor, true)?;
        }
        Ok(pair)
    }

    /// The cache of one side.
    pub fn cache(&self, side: usize) -> &[f64] {
        let len = self.caches.len() / 2;
        &self.caches[side * len..][..len]
    }

    /// The number of rows of one side.
    pub fn size(&self, side: usize) -> usize {
        self.sizes[side]
    }

    /// Rows assigned to one side, without its anchor.
    pub fn dealt(&self, side: usize) -> impl Iterator<Item = u32> + '_ {
        let pairs = self.rows.iter().zip(&self.sides);
        pairs.filter(move |(_, assigned)| usize::from(**assigned) == side).map(|(row, _)| *row)
    }

    /// Assigns every row to either side with equal probability.
    pub fn deal_at_random(&mut self, turn: &mut Turn<'_>) -> Result<()> {
        for index in 0..self.rows.len() {
            let side = turn.draws.pick(2);
            self.deal(turn, index, side)?;
        }
        Ok(())
    }

    /// Assigns every row to a given side.
    pub fn deal_to(&mut self, turn: &Turn<'_>, sides: &[u8]) -> Result<()> {
        sides.iter().enumerate().try_for_each(|(index, &side)| self.deal(turn, index, usize::from(side)))
    }

    /// Assigns the rows one by one from their conditional distribution given the rows assigned so far; an assigned row
    /// is removed first. With `forced`, the side of each row, nothing is drawn. Returns the log probability of the
    /// assignment, nats.
    ///
    /// # Errors
    /// As [`TwoClusters::new`]; [`crate::Error::Cancelled`].
    pub fn scan(&mut self, turn: &mut Turn<'_>, process: &ProcessState, forced: Option<&[u8]>) -> Result<f64> {
        let mut log_probability = 0.0;
        for index in 0..self.rows.len() {
            if index % 256 == 0 {
                turn.cancel.check()?;
            }
            let row = self.rows[index];
            if self.sides[index] != UNDEALT {
                self.change(turn, usize::from(self.sides[index]), row, false)?;
            }
            let mut weights = [0.0; 2];
            turn.target.urn().log_predictives(&self.caches, turn.target.table.row(row as usize), &mut weights)?;
            for (weight, &size) in weights.iter_mut().zip(&self.sizes) {
                *weight += turn.target.process.log_join(size, process);
            }
            // Probability of the second side, from the difference of the log weights.
            let log_odds = weights[1] - weights[0];
            let second = (1.0 + (-log_odds).exp()).recip();
            let side = match forced {
                Some(sides) => usize::from(sides[index]),
                None => turn.draws.choose(&[1.0 - second, second]),
            };
            let log_ratio = if side == 1 { log_odds } else { -log_odds };
            log_probability -=
                if log_ratio > 0.0 { (-log_ratio).exp().ln_1p() } else { log_ratio.exp().ln_1p() - log_ratio };
            self.deal(turn, index, side)?;
        }
        Ok(log_probability)
    }

    /// The sides of the rows in the partition of a chain, where `slot` is the slot of the second anchor.
    pub fn sides_of(&self, state: &ChainState, slot: u32) -> Vec<u8> {
        self.rows.iter().map(|&row| u8::from(state.clusters.slot(row) == slot)).collect()
    }

    fn deal(&mut self, turn: &Turn<'_>, index: usize, side: usize) -> Result<()> {
        self.sides[index] = side as u8;
        self.change(turn, side, self.rows[index], true)
    }

    fn change(&mut self, turn: &Turn<'_>, side: usize, row: u32, joins: bool) -> Result<()> {
        let (len, urn, row) = (turn.target.empty.len(), turn.target.urn(), turn.target.table.row(row as usize));
        let cache = &mut self.caches[side * len..][..len];
        if joins {
            self.sizes[side] += 1;
            urn.add(cache, row)
        } else {
            self.sizes[side] -= 1;
            urn.remove(cache, row)
        }
    }
}
