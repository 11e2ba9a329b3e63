//! The integration tests, in one program, because each program compiles the generic core again.

mod bounds;
mod common;
#[path = "../../examples/mixture.rs"]
mod example;
mod laws;
mod moves;
mod processes;
mod remote;
mod seams;
mod subprocess_executor;
mod toy_question;
mod toy_units;
mod trees;
mod units;
mod urn;

#[test]
fn the_example_runs() {
    example::main().expect("a fit");
}
