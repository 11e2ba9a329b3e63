//! The integration tests, in one program, because each program compiles the generic core again.

mod bounds;
mod common;
mod laws;
mod moves;
mod processes;
mod seams;
mod subprocess_executor;
mod toy_question;
mod toy_units;
mod trees;
mod units;
mod urn;
