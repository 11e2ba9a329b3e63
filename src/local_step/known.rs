//! How much of the rows of known class each component has.

use crate::component::Class;
use crate::error::Result;
use crate::local_step::{Chunk, Tap};

/// Sums the responsibilities of rows of known class by component.
#[derive(Debug)]
pub struct KnownRows<'a> {
    classes: Option<&'a [Class]>,
    /// The sums, (K,), with the tail; empty if rows have no classes.
    pub sums: Vec<f64>,
}

impl<'a> KnownRows<'a> {
    /// Has seen no row; `classes` are those of the rows of the data, if they have any.
    pub fn new(classes: Option<&'a [Class]>, n_components: usize) -> Self {
        Self { classes, sums: classes.map_or_else(Vec::new, |_| vec![0.0; n_components + 1]) }
    }
}

impl Tap for KnownRows<'_> {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        let (Some(classes), pairs) = (self.classes, chunk.own_order()) else { return Ok(()) };
        for unit in (0..chunk.units.len()).filter(|&unit| classes[chunk.row_number(unit)].is_some()) {
            let (components, values) = pairs.pairs(unit);
            components.iter().zip(values).for_each(|(&component, value)| self.sums[component as usize] += value);
        }
        Ok(())
    }

    fn needs_order(&self) -> bool {
        false
    }
}
