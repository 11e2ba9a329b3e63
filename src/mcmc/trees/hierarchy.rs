//! A tree over all rows with the potentials of its nodes, as users see it.

use crate::data::{Restrictions, Tree};
use crate::error::{Error, Result};
use crate::mcmc::trees::agglomeration::check_number;
use crate::mcmc::trees::arena::{Node, softplus};
use crate::mcmc::trees::{Arena, agglomerate, incremental, join_on_top};
use crate::mcmc::{ChainState, Target, check_model};
use crate::model::Specification;
use crate::parallel::Cancel;
use crate::process::{Occupancy, Partitions, ProcessState};
use crate::rng::{Generator, Purpose, permutation, stream};

/// How a hierarchy is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Joins the two most similar trees repeatedly, in O(n^2 log n) time and O(n^2) memory.
    Greedy,
    /// Inserts rows in random order, each where it fits best.
    Incremental,
}

/// Which nodes of a tree become clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeCut {
    /// The highest nodes whose rows are more probably one cluster than not: ln d <= 0.
    Bhc,
    /// The most probable of the tree-consistent partitions.
    Map,
}

/// How hierarchies are built.
#[derive(Debug, Clone, Copy)]
pub struct HierarchyPlan {
    /// Method.
    pub method: Method,
    /// Number of trials. Each draws auxiliary values and learned parameters anew, given the previous trial.
    pub n_trials: usize,
    /// The seed.
    pub seed: u64,
}

/// A binary tree over all rows of a target. Values of nodes are in nats, leaves first. Densities are per unit of volume
/// in coordinates; [`Hierarchy::log_densities`] returns them in the units of the data.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    /// The tree.
    pub tree: Tree,
    /// ln h of each node: its rows as one cluster.
    pub log_cluster: Vec<f64>,
    /// ln phi of each node.
    pub log_potential: Vec<f64>,
    /// ln d of each node; minus infinity for leaves.
    pub log_dissimilarity: Vec<f64>,
    /// Number of rows below each node.
    pub sizes: Vec<u32>,
    /// The state of the process under which it was built.
    pub process: ProcessState,
}

/// Returns the state of the process for building trees before any partition is known. Auxiliary values are drawn as for
/// about ln n clusters of equal size.
pub fn first_process(target: &Target, augmented: bool, draws: &mut Generator) -> Result<ProcessState> {
    let mut process = target.process.start(augmented)?;
    if process.auxiliary.is_some() {
        let n = target.n_rows();
        let k = (n as f64).ln().ceil().max(1.0) as usize;
        let sizes: Vec<usize> = (0..k).map(|index| n / k + usize::from(index < n % k)).collect();
        target.process.update(&sizes, &mut process, draws);
    }
    Ok(process)
}

/// Whether hierarchies need auxiliary values of a process, because its partitions are a product over blocks only given
/// these.
///
/// # Errors
/// [`Error::NotSupported`] if they are no product over blocks even then. `name` is the name of the process.
fn needs_auxiliary(process: &dyn Partitions, name: &str) -> Result<bool> {
    let augments = process.augments();
    let state = process.start(augments)?;
    let rest = |blocks| process.log_rest(Occupancy { units: 3, blocks }, &state);
    if (1..3).all(|blocks| (rest(blocks + 1) - rest(blocks)).abs() < 1e-9) {
        return Ok(augments);
    }
    process.start(true).map(|_| true).map_err(|_| {
        let reason = "the probability of its partitions is no product over clusters";
        let allowed = "a DirichletProcess, a NormalizedGeneralizedGamma, or a PitmanYor with a concentration above 0";
        Error::not_supported("process", format!("a hierarchy under {name}"), reason, allowed)
    })
}

/// Refuses a model, or a number of rows, of which no hierarchy can be built, before rows are read.
///
/// # Errors
/// As [`check_model`]; [`Error::NotSupported`] for a process whose partitions are no product over blocks, also given
/// auxiliary values; [`Error::InvalidArgument`] for more rows than [`Method::Greedy`] takes.
pub fn check_hierarchy(specification: &Specification, method: Method, n: usize) -> Result<()> {
    let law = check_model(specification)?;
    specification.check_learns_nothing("a hierarchy", "a number")?;
    needs_auxiliary(law.partitions()?.as_ref(), &specification.process.name)?;
    if method == Method::Greedy { check_number(n) } else { Ok(()) }
}

impl Hierarchy {
    /// Builds several hierarchies of all rows, and returns the one with the largest log joint probability of its most
    /// probable partition and of learned parameters. Builds one if nothing is random.
    ///
    /// # Errors
    /// [`crate::Error::NotSupported`] for a process whose partitions are no product over blocks, also given auxiliary
    /// values; [`crate::Error::InvalidArgument`] for more rows than [`Method::Greedy`] takes, and for
    /// trees that do not fit in memory; [`crate::Error::Numerical`]; [`crate::Error::Cancelled`].
    ///
    /// # Panics
    /// For a plan without trials.
    pub fn build(target: &Target, plan: HierarchyPlan, cancel: &Cancel) -> Result<Self> {
        let mut draws = stream(plan.seed, Purpose::Trees, 0);
        let augmented = needs_auxiliary(target.process.as_ref(), "this process")?;
        let mut process = first_process(target, augmented, &mut draws)?;
        let is_fixed = plan.method == Method::Greedy && !augmented && target.process.traced(&process).is_empty();
        let n_trials = if is_fixed { plan.n_trials.min(1) } else { plan.n_trials };
        let mut best: Option<(f64, Self)> = None;
        for _ in 0..n_trials {
            let order = permutation(target.n_rows() as u32, &mut draws);
            let hierarchy = Self::once(target, process, plan.method, &order, cancel)?;
            let labels = hierarchy.cut(TreeCut::Map);
            let sizes = ChainState::new(target, &labels)?.clusters.sizes();
            target.process.update(&sizes, &mut process, &mut draws);
            let score = hierarchy.score(target, &labels)?;
            if best.as_ref().is_none_or(|(most, _)| score > *most) {
                best = Some((score, hierarchy));
            }
        }
        Ok(best.expect("at least one trial").1)
    }

    fn once(target: &Target, process: ProcessState, method: Method, order: &[u32], cancel: &Cancel) -> Result<Self> {
        let mut arena = Self::room(target, &process, "data")?;
        let root = match method {
            Method::Greedy => agglomerate(&mut arena, (0..target.n_rows() as u32).collect(), cancel)?,
            Method::Incremental => {
                let mut forest = Vec::new();
                incremental(&mut arena, &mut forest, order, cancel)?;
                join_on_top(&mut arena, forest, cancel)?
            }
        };
        Self::anew(arena, root, process)
    }

    fn room<'a>(target: &'a Target, process: &ProcessState, argument: &'static str) -> Result<Arena<'a>> {
        Arena::with_room(target, process, argument, "rows of which trees fit in memory, fewer or with fewer columns")
    }

    /// Builds the hierarchy of the tree below a node that has all rows, with the same bits as [`Hierarchy::restore`].
    /// Insertion adds the rows of a node in another order.
    fn anew(arena: Arena<'_>, root: u32, process: ProcessState) -> Result<Self> {
        let (target, (tree, _)) = (arena.target(), shape(&arena, root));
        drop(arena);
        Self::restore(target, &tree, process)
    }

    /// Builds the hierarchy of the tree below a node that has all rows.
    fn of(arena: &Arena<'_>, root: u32, process: ProcessState) -> Self {
        let (tree, nodes) = shape(arena, root);
        let sizes = tree.sizes();
        let value = |of: fn(&Node) -> f64| nodes.iter().map(|&node| of(arena.node(node))).collect();
        Self {
            tree,
            log_cluster: value(|node| node.log_cluster),
            log_potential: value(|node| node.log_potential),
            log_dissimilarity: value(|node| node.log_dissimilarity),
            sizes,
            process,
        }
    }

    /// Builds the hierarchy of a known tree.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for trees that do not fit in memory; [`Error::Numerical`].
    pub fn restore(target: &Target, tree: &Tree, process: ProcessState) -> Result<Self> {
        let mut arena = Self::room(target, &process, "data")?;
        let root = grow(&mut arena, &(0..target.n_rows() as u32).collect::<Vec<_>>(), tree.joins())?;
        Ok(Self::of(&arena, root, process))
    }

    /// Inserts the rows that `target` has after those of the hierarchy, one after another.
    pub fn insert(&self, target: &Target, cancel: &Cancel) -> Result<Self> {
        let mut arena = Self::room(target, &self.process, "X_new")?;
        let n = self.tree.n_rows();
        let mut forest = Vec::new();
        let restrictions = Restrictions::new(self.tree.clone());
        for node in self.clusters(TreeCut::Bhc) {
            let rows = self.tree.rows_below(node);
            forest.push(grow(&mut arena, &rows, &restrictions.joins(&rows))?);
        }
        let new: Vec<u32> = (n as u32..target.n_rows() as u32).collect();
        incremental(&mut arena, &mut forest, &new, cancel)?;
        let root = join_on_top(&mut arena, forest, cancel)?;
        Self::anew(arena, root, self.process)
    }

    /// Refuses a state of the process that no run produces. Files are not trusted.
    ///
    /// # Errors
    /// [`Error::Format`].
    pub fn check_state(&self, target: &Target) -> Result<()> {
        let law = target.process.as_ref();
        let traced: Vec<f64> = law.traced(&self.process).into_iter().map(|(_, value)| value).collect();
        let known = law.restored(&traced)? == self.process.integrated();
        let auxiliary = self.process.auxiliary;
        // The mass of a process that always has auxiliary values is its parameter.
        let mass_is_sound = |log_mass: f64| !law.augments() || log_mass == self.process.concentration.ln();
        let fits = needs_auxiliary(law, "this process").is_ok_and(|needs| needs == auxiliary.is_some())
            && auxiliary.is_none_or(|auxiliary| mass_is_sound(auxiliary.log_mass));
        let values = self.log_potential.iter().chain(&self.log_cluster);
        if known && fits && values.chain([&self.log_evidence_bound(target)]).all(|value| value.is_finite()) {
            return Ok(());
        }
        Err(Error::Format { message: "a state of the process that no hierarchy has".into() })
    }

    /// ln h and ln phi of the nodes in the units of the data, nats, given [`Target::log_volume`].
    pub fn log_densities(&self, log_volume: f64) -> [Vec<f64>; 2] {
        let in_data_units = |values: &Vec<f64>| {
            values.iter().zip(&self.sizes).map(|(value, &size)| value - f64::from(size) * log_volume).collect()
        };
        [in_data_units(&self.log_cluster), in_data_units(&self.log_potential)]
    }

    /// Lower bound of ln p(X), or of the joint density with all auxiliary values that the process has: ln p(X, u), or
    /// ln p(X, u, m) with a random mass, nats (mathematics 8.9, item 2).
    pub fn log_evidence_bound(&self, target: &Target) -> f64 {
        let all = Occupancy { units: target.n_rows(), blocks: 1 };
        let rest = target.process.log_rest(all, &self.process);
        rest + self.log_potential[self.tree.root() as usize] - target.n_rows() as f64 * target.log_volume
    }

    /// log p(X, partition, learned parameters) of labels with auxiliary values integrated out, nats.
    pub fn score(&self, target: &Target, labels: &[u32]) -> Result<f64> {
        let mut state = ChainState::new(target, labels)?;
        (state.process.concentration, state.process.discount) = (self.process.concentration, self.process.discount);
        Ok(state.log_joint(target)? + target.process.log_prior(&state.process))
    }

    /// The nodes that become clusters under a cut, from left to right.
    pub fn clusters(&self, cut: TreeCut) -> Vec<u32> {
        let is_one = match cut {
            TreeCut::Bhc => self.log_dissimilarity.iter().map(|log_d| *log_d <= 0.0).collect(),
            TreeCut::Map => self.best_as_one(),
        };
        let mut found = Vec::new();
        let mut open = vec![self.tree.root()];
        while let Some(node) = open.pop() {
            match self.tree.children(node).filter(|_| !is_one[node as usize]) {
                Some([left, right]) => open.extend([right, left]),
                None => found.push(node),
            }
        }
        found
    }

    /// Whether the best tree-consistent partition of the rows below each node is one cluster.
    fn best_as_one(&self) -> Vec<bool> {
        let mut best = self.log_cluster.clone();
        let mut is_one = vec![true; best.len()];
        let n = self.tree.n_rows();
        for (k, [left, right]) in self.tree.joins().iter().enumerate() {
            let apart = best[*left as usize] + best[*right as usize];
            if apart > best[n + k] {
                (best[n + k], is_one[n + k]) = (apart, false);
            }
        }
        is_one
    }

    /// Labels of the rows under a cut.
    pub fn cut(&self, cut: TreeCut) -> Vec<u32> {
        let mut labels = vec![0; self.tree.n_rows()];
        for (label, node) in (0..).zip(self.clusters(cut)) {
            self.tree.rows_below(node).into_iter().for_each(|row| labels[row as usize] = label);
        }
        labels
    }
}

impl Hierarchy {
    /// The joins in the format of SciPy: both nodes, the height, and the number of rows, (n - 1, 4). Joins are sorted
    /// by height, which is the largest of -ln p(one cluster) of the node and those below, nats.
    pub fn linkage(&self) -> Vec<[f64; 4]> {
        let n = self.tree.n_rows();
        let mut heights = vec![0.0; n];
        for (k, [left, right]) in self.tree.joins().iter().enumerate() {
            let below = f64::max(heights[*left as usize], heights[*right as usize]);
            heights.push(f64::max(softplus(self.log_dissimilarity[n + k]), below));
        }
        let mut order: Vec<usize> = (n..heights.len()).collect();
        order.sort_by(|a, b| heights[*a].total_cmp(&heights[*b]));
        let mut numbers: Vec<usize> = (0..heights.len()).collect();
        order.iter().enumerate().for_each(|(place, &node)| numbers[node] = n + place);
        let row = |&node: &usize| {
            let mut children = self.tree.joins()[node - n].map(|child| numbers[child as usize]);
            children.sort_unstable();
            [children[0] as f64, children[1] as f64, heights[node], f64::from(self.sizes[node])]
        };
        order.iter().map(row).collect()
    }
}

/// Makes the nodes of a tree with these joins; `i` is the leaf of `rows[i]`. Returns the root.
pub fn grow(arena: &mut Arena<'_>, rows: &[u32], joins: &[[u32; 2]]) -> Result<u32> {
    let mut nodes = rows.to_vec();
    for children in joins {
        let [a, b] = children.map(|child| nodes[child as usize]);
        nodes.push(arena.join(a, b)?);
    }
    Ok(nodes[nodes.len() - 1])
}

/// Returns the tree below a node that has all rows, and the arena's node for each of its nodes.
pub fn shape(arena: &Arena<'_>, root: u32) -> (Tree, Vec<u32>) {
    let n = arena.target().n_rows();
    let mut nodes: Vec<u32> = (0..n as u32).collect();
    let mut numbers = std::collections::HashMap::new();
    let mut joins = Vec::with_capacity(n.saturating_sub(1));
    for &node in arena.inner_below(root).iter().rev() {
        let Some(children) = arena.children(node) else { continue };
        joins.push(children.map(|child| numbers.get(&child).copied().unwrap_or(child)));
        numbers.insert(node, nodes.len() as u32);
        nodes.push(node);
    }
    (Tree::new(joins).expect("a tree over all rows"), nodes)
}
