//! Taps that record the responsibilities of each row.

use std::collections::BTreeMap;

use stickbreak::component::ComponentId;
use stickbreak::local_step::{Chunk, Tap};

/// Responsibilities of one row, without the tail.
pub type Shares = BTreeMap<ComponentId, f64>;

/// Records the responsibilities of each row.
pub struct Watch<'a> {
    pub ids: &'a [ComponentId],
    pub rows: &'a mut [Shares],
}

impl Tap for Watch<'_> {
    fn observe(&mut self, chunk: &Chunk<'_>) -> stickbreak::Result<()> {
        let width = chunk.responsibilities.width;
        for unit in 0..chunk.responsibilities.len() {
            let pairs_of_unit = unit * width..(unit + 1) * width;
            let pairs = chunk.responsibilities.components[pairs_of_unit.clone()]
                .iter()
                .zip(&chunk.responsibilities.values[pairs_of_unit]);
            self.rows[chunk.row_number(unit)] = pairs
                .filter(|(_, value)| **value > 0.0)
                .filter_map(|(&position, &value)| Some((*self.ids.get(position as usize)?, value)))
                .collect();
        }
        Ok(())
    }
}

/// Counts the components that each row keeps, including the tail.
pub struct Count<'a>(pub &'a mut [usize]);

impl Tap for Count<'_> {
    fn observe(&mut self, chunk: &Chunk<'_>) -> stickbreak::Result<()> {
        for (unit, values) in chunk.responsibilities.values.chunks(chunk.responsibilities.width).enumerate() {
            self.0[chunk.row_number(unit)] = values.iter().filter(|value| **value > 0.0).count();
        }
        Ok(())
    }
}

/// Records every number of each row.
pub struct All<'a>(pub &'a mut [Vec<f64>]);

impl Tap for All<'_> {
    fn observe(&mut self, chunk: &Chunk<'_>) -> stickbreak::Result<()> {
        for (unit, values) in chunk.responsibilities.values.chunks(chunk.responsibilities.width).enumerate() {
            self.0[chunk.row_number(unit)] = values.to_vec();
        }
        Ok(())
    }
}
