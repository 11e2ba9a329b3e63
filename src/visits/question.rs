//! Questions to every shard, whose answers add up. What a question is about is known only to those who ask and answer
//! it; in between it is a name and a payload, so questions and answers can travel to workers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::global_step::Globals;
use crate::local_step::Units;
use crate::model::Model;
use crate::parallel::Cancel;
use crate::payload::{Content, Payload};
use crate::simd::Scalar;

/// Answers of shards, which add up to the answer of all data. The default is the answer of no data.
pub trait Additive: Content + Default {
    /// Adds the answer of another shard.
    fn add(&mut self, other: Self);
}

/// The answer to a request.
impl Additive for () {
    fn add(&mut self, (): Self) {}
}

/// A question to every shard.
pub trait Question: Content {
    /// Its name, which no other question has.
    const NAME: &'static str;
    /// Its answers.
    type Answer: Additive;
}

/// A question that units of any kind can answer.
pub trait UnitsQuestion<F: Scalar>: Question {
    /// Returns the answer of the units of a shard.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Numerical`].
    fn answer(&self, units: &AskedUnits<'_, F>) -> Result<Self::Answer>;
}

/// The units of a shard of which a question is asked.
pub struct AskedUnits<'a, F: Scalar> {
    /// Index of the shard.
    pub shard: usize,
    /// The units.
    pub units: &'a dyn Units<F>,
    /// The model.
    pub model: &'a Model<F>,
    /// The components, if the question is asked under some.
    pub globals: Option<&'a Globals>,
    /// Checked between blocks.
    pub cancel: &'a Cancel,
}

/// A question on its way to a shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    name: Cow<'static, str>,
    content: Payload,
    globals: Option<Globals>,
}

impl Asked {
    /// Wraps a question; `globals` are the components under which it is asked, if it depends on any.
    pub fn new<Q: Question>(question: Q, globals: Option<&Globals>) -> Self {
        Self { name: Cow::Borrowed(Q::NAME), content: Payload::new(question), globals: globals.cloned() }
    }

    /// The name of the question.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The components under which the question is asked.
    pub fn globals(&self) -> Option<&Globals> {
        self.globals.as_ref()
    }

    /// Returns the question, or `None` if it is another one.
    ///
    /// # Errors
    /// [`Error::Format`] for a damaged question.
    pub fn get<Q: Question>(&self) -> Result<Option<Cow<'_, Q>>> {
        if self.name == Q::NAME { self.content.get().map(Some) } else { Ok(None) }
    }

    /// The error for a question that nobody here can answer.
    pub fn refusal(&self) -> Error {
        let found = format!("the question {:?} to these units", self.name);
        Error::not_supported("units", found, "they have no answer to it", "units that answer it")
    }
}
