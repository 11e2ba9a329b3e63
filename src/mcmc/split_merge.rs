//! Split-merge moves: restricted Gibbs proposals (Jain & Neal 2004) and sequential allocation (Dahl 2005).

use crate::error::Result;
use crate::mcmc::pair::TwoClusters;
use crate::mcmc::samplers::{SUBSET, check_subset};
use crate::mcmc::{Attempts, ChainState, Collapsed, CollapsedGibbs, Info, Turn};
use crate::parameters::Parameters;
use crate::process::Occupancy;
use crate::registry::{DefaultValue, Entry, Parameter, ParameterKind};

/// How rows are divided between the two parts of a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dealing {
    /// At random, then by this many restricted Gibbs scans, then by one more scan, whose probability enters the ratio.
    Restricted(usize),
    /// In a single pass, row by row.
    Sequential,
}

/// A sweep makes one split or merge of the clusters of two random rows, then collapsed Gibbs steps.
#[derive(Debug, Clone, Copy)]
pub struct SplitMerge {
    proposal: Dealing,
    gibbs: CollapsedGibbs,
}

const PROPOSAL: Parameter =
    Parameter::new("proposal", ParameterKind::Word(&["restricted", "sequential"]), DefaultValue::Word("sequential"));
const SCANS: Parameter =
    Parameter::new("scans", ParameterKind::Integer { least: 0, greatest: 1000 }, DefaultValue::Number(3.0));

impl SplitMerge {
    /// Entry in the registry.
    pub const ENTRY: Entry = Entry { parameters: &[PROPOSAL, SCANS, SUBSET], ..Entry::new("SplitMerge") };

    /// Builds the sampler from the parameters of [`SplitMerge::ENTRY`].
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`] naming the parameter.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        let scans = parameters.integer(&SCANS)?;
        let proposal =
            if parameters.word(&PROPOSAL)? == "sequential" { Dealing::Sequential } else { Dealing::Restricted(scans) };
        Ok(Self { proposal, gibbs: CollapsedGibbs { subset: parameters.optional_integer(&SUBSET)? } })
    }

    /// Proposes one split or merge.
    pub fn propose(&self, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<[Info; 2]> {
        let mut infos = ["split", "merge"].map(|name| Info::of_draws(name, 0, 0));
        let n = turn.target.n_rows();
        if n < 2 {
            return Ok(infos);
        }
        let first = turn.draws.pick(n) as u32;
        let mut second = turn.draws.pick(n - 1) as u32;
        second += u32::from(second >= first);
        let slots = [first, second].map(|row| state.clusters.slot(row));
        let mut rows = state.clusters.rows_of(slots[0], slots[1]);
        rows.retain(|&row| row != first && row != second);
        // One random order for the whole move, because forward and reverse proposals need the same distribution over
        // orders.
        turn.draws.shuffle(&mut rows);
        let mut pair = TwoClusters::new(turn, [first, second], rows)?;
        self.launch(&mut pair, state, turn)?;
        let is_split = slots[0] == slots[1];
        infos[usize::from(!is_split)].attempts = if is_split {
            split(&mut pair, slots[0], second, state, turn)?
        } else {
            merge(&mut pair, slots, state, turn)?
        };
        Ok(infos)
    }

    /// Brings the pair to the launch state, from which the last scan starts. Its distribution depends only on the rows
    /// and the anchors, so it cancels in the ratio of proposals.
    fn launch(&self, pair: &mut TwoClusters, state: &ChainState, turn: &mut Turn<'_>) -> Result<()> {
        let Dealing::Restricted(scans) = self.proposal else { return Ok(()) };
        pair.deal_at_random(turn)?;
        for _ in 0..scans {
            pair.scan(turn, &state.process, None)?;
        }
        Ok(())
    }
}

impl Collapsed for SplitMerge {
    fn step(&self, state: &mut ChainState, turn: &mut Turn<'_>) -> Result<Vec<Info>> {
        let [split, merge] = self.propose(state, turn)?;
        let mut infos = vec![split, merge];
        infos.extend(self.gibbs.step(state, turn)?);
        Ok(infos)
    }

    fn check(&self, n_rows: usize) -> Result<()> {
        check_subset(self.gibbs.subset, n_rows)
    }
}

/// Proposes to split the cluster in a slot; `second` is the anchor of the part that leaves.
fn split(
    pair: &mut TwoClusters,
    slot: u32,
    second: u32,
    state: &mut ChainState,
    turn: &mut Turn<'_>,
) -> Result<Attempts> {
    let log_proposal = pair.scan(turn, &state.process, None)?;
    let urn = turn.target.urn();
    let log_likelihood = urn.log_marginal_likelihood(pair.cache(0))? + urn.log_marginal_likelihood(pair.cache(1))?
        - urn.log_marginal_likelihood(state.clusters.cache(turn.target, slot as usize))?;
    let log_ratio = log_likelihood + log_prior_of_split([pair.size(0), pair.size(1)], 1, state, turn) - log_proposal;
    let accepted = turn.draws.accept(log_ratio);
    if accepted {
        let leaving: Vec<u32> = pair.dealt(1).chain([second]).collect();
        state.split(turn.target, slot, &leaving, pair.cache(0), pair.cache(1));
    }
    Ok(Attempts::judged(log_ratio, accepted))
}

/// Proposes to merge the clusters in two slots.
fn merge(pair: &mut TwoClusters, slots: [u32; 2], state: &mut ChainState, turn: &mut Turn<'_>) -> Result<Attempts> {
    let sides = pair.sides_of(state, slots[1]);
    let log_proposal = pair.scan(turn, &state.process, Some(&sides))?;
    let (target, urn) = (turn.target, turn.target.urn());
    let [one, other] = slots.map(|slot| state.clusters.cache(target, slot as usize));
    let mut both = one.to_vec();
    urn.merge(&mut both, other)?;
    let log_likelihood =
        urn.log_marginal_likelihood(&both)? - urn.log_marginal_likelihood(one)? - urn.log_marginal_likelihood(other)?;
    let sizes = slots.map(|slot| state.clusters.size(slot));
    let log_ratio = log_likelihood - log_prior_of_split(sizes, 0, state, turn) + log_proposal;
    let accepted = turn.draws.accept(log_ratio);
    if accepted {
        state.join(target, slots[0], slots[1], &both);
    }
    Ok(Attempts::judged(log_ratio, accepted))
}

/// Log ratio of the prior probabilities of two blocks of these sizes and of their union. `n_more` is the number of
/// blocks of the split partition minus that of the current one.
fn log_prior_of_split(sizes: [usize; 2], n_more: usize, state: &ChainState, turn: &Turn<'_>) -> f64 {
    let (law, process) = (&turn.target.process, &state.process);
    let block = |size: usize| law.log_block(size, process);
    let rest = |blocks: usize| law.log_rest(Occupancy { units: turn.target.n_rows(), blocks }, process);
    let blocks = state.clusters.n_clusters() + n_more;
    block(sizes[0]) + block(sizes[1]) - block(sizes[0] + sizes[1]) + rest(blocks) - rest(blocks - 1)
}
