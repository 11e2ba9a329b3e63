//! A question that only this file knows: the mass and the sums of the units above a value in one column.

use serde::{Deserialize, Serialize};
use stickbreak::Result;
use stickbreak::error::Error;
use stickbreak::executor::ask;
use stickbreak::local_step::OpeningRule;
use stickbreak::simd::Scalar;
use stickbreak::visits::{Additive, AskedUnits, JudgeNodes, Question, TreeSettings, UnitOptions, UnitsQuestion};

use crate::common::distance;
use crate::subprocess_executor::{BATCHES, D, N, Pool, TREE, rows, with_executor};

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct SumsAbove {
    column: usize,
    value: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    n_units: usize,
    shards: Vec<usize>,
    mass: f64,
    columns: Vec<f64>,
}

impl Additive for Sums {
    fn add(&mut self, other: Self) {
        self.n_units += other.n_units;
        self.shards.extend(other.shards);
        self.mass += other.mass;
        self.columns.resize(other.columns.len(), 0.0);
        self.columns.iter_mut().zip(other.columns).for_each(|(sum, more)| *sum += more);
    }
}

impl Question for SumsAbove {
    const NAME: &'static str = "sums above";
    type Answer = Sums;
}

impl<F: Scalar> UnitsQuestion<F> for SumsAbove {
    fn answer(&self, asked: &AskedUnits<'_, F>) -> Result<Sums> {
        let (units, origin) = (asked.units, asked.model.likelihood.origin());
        let from: Vec<F> = origin.iter().map(|&value| F::from_f64(value)).collect();
        let mut answer = Sums { shards: vec![asked.shard], columns: vec![0.0; units.dimension()], ..Sums::default() };
        let mut values = vec![F::ZERO; units.n_values()];
        for unit in 0..units.len() {
            units.read(&[unit as u32], &from, &mut values);
            let row: Vec<f64> = values.iter().zip(origin).map(|(value, origin)| value.to_f64() + origin).collect();
            if row[self.column] > self.value {
                let mass = units.mass(unit);
                answer.n_units += 1;
                answer.mass += mass;
                answer.columns.iter_mut().zip(row).for_each(|(sum, value)| *sum += mass * value);
            }
        }
        Ok(answer)
    }
}

/// The answer for the rows as a whole.
fn expected(SumsAbove { column, value }: SumsAbove) -> Sums {
    let mut whole = Sums { shards: (0..BATCHES).collect(), columns: vec![0.0; D], ..Sums::default() };
    for row in rows().chunks_exact(D).filter(|row| row[column] > value) {
        (whole.n_units, whole.mass) = (whole.n_units + 1, whole.mass + 1.0);
        whole.columns.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
    whole
}

/// The answers of all shards, each once, add up to that of all rows.
#[test]
fn answers_add_up_here_and_in_other_processes() {
    for (column, value) in [(1, 0.5), (3, -1e9)] {
        let question = SumsAbove { column, value };
        let whole = expected(question);
        let here = with_executor(UnitOptions::Rows, |_, mut executor| ask(&mut executor, question, None));
        let here = here.expect("in memory");
        assert!(whole.n_units > 0 && (value > -1e9 || whole.n_units == N));
        assert_eq!((here.n_units, &here.shards, here.mass), (whole.n_units, &whole.shards, whole.mass));
        assert!(distance(&here.columns, &whole.columns) < 1e-12);
        let mut pool = Pool::start(UnitOptions::Rows);
        assert_eq!(ask(&mut pool, question, None), Ok(here));
        pool.stop();
    }
}

/// Nodes answer for their rows.
#[test]
fn units_of_any_kind_answer() {
    let question = SumsAbove { column: 0, value: f64::NEG_INFINITY };
    let units = UnitOptions::Nodes(TreeSettings { refine: false, ..TREE });
    let found = with_executor(units, |_, mut executor| ask(&mut executor, question, None)).expect("in memory");
    assert_eq!((found.n_units, found.mass), (BATCHES << TREE.options.depth, N as f64));
    assert!(distance(&found.columns, &expected(question).columns) < 1e-12);
}

#[test]
fn a_question_without_an_answer_is_refused_by_name() {
    let question = JudgeNodes { rule: OpeningRule::Gain, tolerance: 0.0, seed: 0, n_rows: 8, fresh: false };
    let refused = with_executor(UnitOptions::Rows, |_, mut executor| ask(&mut executor, question, None));
    let Err(Error::NotSupported { argument, found, .. }) = refused else { panic!("{refused:?}") };
    assert!(argument == "units" && found.contains("\"judge nodes\""), "{found}");
}
