//! Taps that write down what a local step gives each row.

use std::collections::BTreeMap;

use stickbreak::component::ComponentId;
use stickbreak::local_step::{Chunk, Tap};

/// Responsibilities of one row; the tail is not among them.
pub type Shares = BTreeMap<ComponentId, f64>;

/// Writes down what a local step gives each row.
pub struct Watch<'a> {
    pub ids: &'a [ComponentId],
    pub rows: &'a mut [Shares],
}

impl Tap for Watch<'_> {
    fn observe(&mut self, chunk: &Chunk<'_>) -> stickbreak::Result<()> {
        let width = chunk.responsibilities.width;
        for unit in 0..chunk.responsibilities.len() {
            let own = unit * width..(unit + 1) * width;
            let pairs = chunk.responsibilities.components[own.clone()].iter().zip(&chunk.responsibilities.values[own]);
            self.rows[chunk.row_number(unit)] = pairs
                .filter(|(_, value)| **value > 0.0)
                .filter_map(|(&at, &value)| Some((*self.ids.get(at as usize)?, value)))
                .collect();
        }
        Ok(())
    }
}

/// Counts the components that each row keeps, the tail among them.
pub struct Count<'a>(pub &'a mut [usize]);

impl Tap for Count<'_> {
    fn observe(&mut self, chunk: &Chunk<'_>) -> stickbreak::Result<()> {
        for (unit, values) in chunk.responsibilities.values.chunks(chunk.responsibilities.width).enumerate() {
            self.0[chunk.row_number(unit)] = values.iter().filter(|value| **value > 0.0).count();
        }
        Ok(())
    }
}

/// Writes down every number of each row.
pub struct All<'a>(pub &'a mut [Vec<f64>]);

impl Tap for All<'_> {
    fn observe(&mut self, chunk: &Chunk<'_>) -> stickbreak::Result<()> {
        for (unit, values) in chunk.responsibilities.values.chunks(chunk.responsibilities.width).enumerate() {
            self.0[chunk.row_number(unit)] = values.to_vec();
        }
        Ok(())
    }
}
