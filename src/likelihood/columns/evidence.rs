//! Estimation of the base measures of blocks, each by its own evidence (mathematics 10, 1j).

use crate::error::Result;
use crate::likelihood::columns::{ColumnBlock, Columns};
use crate::likelihood::{Caution, Evidence, Given, Loosening};
use crate::parameters::Parameters;

impl Columns {
    /// The blocks that can be estimated.
    fn estimated(&self) -> impl Iterator<Item = (&ColumnBlock, &dyn Evidence)> {
        self.blocks.iter().filter_map(|block| Some((block, block.conjugate().evidence()?)))
    }

    /// Calls `of` with what is given of each block of which something is estimated.
    fn each_free<T>(
        &self,
        given: &Given<'_>,
        mut of: impl FnMut(&ColumnBlock, &dyn Evidence, &Given<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        for (block, evidence) in self.estimated() {
            let own_name = |name: &String| block.member.own_name(name).map(str::to_owned);
            let free: Vec<String> = given.free.iter().filter_map(own_name).collect();
            if free.is_empty() {
                continue;
            }
            let (parameters, start) = (block.member.parameters(given.parameters), block.member.parameters(given.start));
            let components = block.of_all(given.components);
            let own = Given { components: &components, parameters: &parameters, start: &start, free: &free };
            all.push(of(block, evidence, &own)?);
        }
        Ok(all)
    }
}

impl Evidence for Columns {
    fn cautions(&self) -> Vec<(String, Caution)> {
        let of = |(block, evidence): (&ColumnBlock, &dyn Evidence)| {
            let named = |(name, caution): (String, Caution)| (block.member.name(&name), caution);
            evidence.cautions().into_iter().map(named).collect::<Vec<_>>()
        };
        self.estimated().flat_map(of).collect()
    }

    fn rounding(&self, start: &Parameters, mass: f64, n_components: usize) -> f64 {
        let of = |(block, evidence): (&ColumnBlock, &dyn Evidence)| {
            evidence.rounding(&block.member.parameters(start), mass, n_components)
        };
        self.estimated().map(of).sum()
    }

    fn divergence_of(&self, start: &Parameters) -> Result<f64> {
        self.estimated().map(|(block, evidence)| evidence.divergence_of(&block.member.parameters(start))).sum()
    }

    fn estimate(&self, given: &Given<'_>) -> Result<Parameters> {
        let mut found = given.parameters.clone();
        let mut put = |block: &ColumnBlock, evidence: &dyn Evidence, own: &Given<'_>| {
            block.member.put(&mut found, evidence.estimate(own)?);
            Ok(())
        };
        self.each_free(given, &mut put)?;
        Ok(found)
    }

    fn loose(&self, given: &Given<'_>, by: Loosening<'_>) -> Result<Option<Parameters>> {
        let mut found = given.parameters.clone();
        let put = |block: &ColumnBlock, evidence: &dyn Evidence, own: &Given<'_>| {
            let divisors = match by.common_divisor() {
                Some(_) => by.divisors.to_vec(),
                None => block.values(by.divisors),
            };
            let loose = evidence.loose(own, Loosening { divisors: &divisors, ..by })?;
            let is_looser = loose.is_some();
            block.member.put(&mut found, loose.unwrap_or_default());
            Ok(is_looser)
        };
        let are_looser = self.each_free(given, put)?;
        Ok(are_looser.contains(&true).then_some(found))
    }
}
