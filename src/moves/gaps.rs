//! Merge-entropy gaps of the pairs that a plan lists (mathematics 4.4).

use crate::error::Result;
use crate::local_step::pair_gap;
use crate::moves::Visited;
use crate::parallel::try_map_with;
use crate::simd::Scalar;
use crate::suffstats::PairGaps;

/// The gaps of the listed pairs in one visit.
pub(super) fn gaps<F: Scalar>(visited: &Visited<'_, F>) -> Result<PairGaps> {
    let (units, plan, blocks) = (visited.look.units, visited.look.plan, visited.look.seen.blocks());
    let mut near: Vec<Vec<(u32, u32)>> = vec![Vec::new(); visited.look.ids.len() + 1];
    for (pair, (a, b)) in (0..).zip(&plan.pairs) {
        if let (Some(&a), Some(&b)) = (visited.places.get(a), visited.places.get(b)) {
            near[a as usize].push((b, pair));
            near[b as usize].push((a, pair));
        }
    }
    // By block, the gaps of the pairs that share units of the block.
    let sums = try_map_with(
        blocks.len(),
        || vec![0.0; plan.pairs.len()],
        |gaps, index| {
            let mut shared: Vec<(u32, f64)> = Vec::new();
            for (unit, components, values) in blocks[index].units().filter(|(_, components, _)| components.len() > 1) {
                for (slot, (&a, &p)) in components.iter().zip(values).enumerate() {
                    let near = &near[a as usize];
                    for (b, &q) in components.iter().zip(values).skip(slot + 1).filter(|_| !near.is_empty()) {
                        if let Some(&(_, pair)) = near.iter().find(|(other, _)| other == b) {
                            let sum: &mut f64 = &mut gaps[pair as usize];
                            if *sum == 0.0 {
                                shared.push((pair, 0.0));
                            }
                            *sum += units.mass(unit) * pair_gap(p, q);
                        }
                    }
                }
            }
            for (pair, gap) in &mut shared {
                *gap += std::mem::take(&mut gaps[*pair as usize]);
            }
            Ok(shared)
        },
    )?;
    let mut gaps = vec![0.0; plan.pairs.len()];
    for (pair, gap) in sums.into_iter().flatten() {
        gaps[pair as usize] += gap;
    }
    Ok(PairGaps::Listed(plan.pairs.iter().copied().zip(gaps).collect()))
}
