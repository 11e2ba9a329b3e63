//! How many instructions each kernel executes, counted by callgrind: a record without noise.
//!
//! The program starts itself under valgrind once for each kernel and counts the second of two equal runs. valgrind
//! knows no AVX-512, so the kernels are those of the instruction set that it does know. `necessary` is the share of
//! what cannot be spared: the fused multiply-adds of the triangles, in whole vectors.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::env;
use std::hint::black_box;
use std::process::{Command, Output};

use pulp::{Simd, WithSimd};
use stickbreak::data::RowBlock;
use stickbreak::linalg::{add_moments, packed_len};
use stickbreak::responsibilities::TopL;
use stickbreak::scoring::{Block, Scorer, Scratch};
use stickbreak::simd::{Instructions, Lines, Scalar};
use stickbreak::special::{exp_of_nonpositive, ln_of_positive};
use stickbreak_benches::{Data, Sizes, State, generate};

/// In the environment of the program under valgrind: the kernel to run.
const KERNEL: &str = "STICKBREAK_KERNEL";
const DIMENSIONS: [usize; 5] = [2, 16, 25, 50, 64];
/// Whole groups in either type.
const ROWS: usize = 480;
const COMPONENTS: usize = 32;
const WIDTH: usize = 4;

type Work = Box<dyn FnMut()>;

struct Kernel {
    name: String,
    /// What is counted for each, and how many of them there are.
    unit: &'static str,
    units: usize,
    /// Multiply-adds that each unit needs, and bytes of their numbers.
    needed: (usize, usize),
    make: Box<dyn Fn() -> Work>,
}

fn kernels() -> Vec<Kernel> {
    let mut kernels = Vec::new();
    let mut add = |name: &str, unit, units, needed, make: Box<dyn Fn() -> Work>| {
        kernels.push(Kernel { name: name.to_string(), unit, units, needed, make });
    };
    let pairs = ROWS * COMPONENTS;
    for d in DIMENSIONS {
        let triangle = packed_len(d);
        add(&format!("scores/D={d}/f32"), "pair", pairs, (triangle, 4), Box::new(move || scores::<f32>(d)));
        add(&format!("scores/D={d}/f64"), "pair", pairs, (triangle, 8), Box::new(move || scores::<f64>(d)));
    }
    for d in DIMENSIONS {
        add(&format!("moments/D={d}/f64"), "row", ROWS, (packed_len(d), 8), Box::new(move || moments(d)));
    }
    add("top_l/f32", "pair", pairs, (0, 4), Box::new(top_l::<f32>));
    add("top_l/f64", "pair", pairs, (0, 8), Box::new(top_l::<f64>));
    add("normalise/f32", "row", ROWS, (0, 4), Box::new(normalise::<f32>));
    add("normalise/f64", "row", ROWS, (0, 8), Box::new(normalise::<f64>));
    add("exp/f64", "number", ROWS, (0, 8), Box::new(elementary::<true>));
    add("ln/f64", "number", ROWS, (0, 8), Box::new(elementary::<false>));
    kernels
}

/// A block of rows and packed components.
fn block<F: Scalar>(d: usize) -> (Vec<F>, Box<dyn Scorer<F>>) {
    let sizes = Sizes { n: ROWS, d, k: COMPONENTS, width: WIDTH, threads: 1 };
    let data: Data<F> = generate(sizes);
    let state = State::new(&data, sizes);
    let scorer = state.globals().scorer(&state.model).expect("definite");
    (data.rows, scorer)
}

/// Every score, to the end; the best ones are kept.
fn scores<F: Scalar>(d: usize) -> Work {
    let (rows, scorer) = block::<F>(d);
    let (mut sink, mut scratch) = (TopL::default(), Scratch::default());
    Box::new(move || {
        sink.reset(ROWS, WIDTH, COMPONENTS, None, false, false);
        scorer.score_rows(Block { rows: RowBlock::Dense(&rows), leads: &[] }, None, &mut sink, &mut scratch);
    })
}

/// The scores of all rows and components, component by component.
fn all_scores<F: Scalar>() -> Lines<F> {
    let (rows, scorer) = block::<F>(16);
    let mut sink = TopL::default();
    sink.reset(ROWS, COMPONENTS, COMPONENTS, None, false, false);
    scorer.score_rows(Block { rows: RowBlock::Dense(&rows), leads: &[] }, None, &mut sink, &mut Scratch::default());
    let mut scores = Lines::default();
    scores.reset(ROWS * COMPONENTS, F::ZERO);
    for (slot, score) in scores.iter_mut().enumerate() {
        *score = sink.score(slot % ROWS, slot / ROWS);
    }
    scores
}

/// Offers the scores of all components to an empty sink; compiled for each instruction set.
struct Offer<'a, F>(&'a mut TopL<F>, &'a [F]);

impl<F: Scalar> WithSimd for Offer<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(sink, scores) = self;
        let mut offers = sink.offers(simd);
        for (component, scores) in scores.chunks_exact(ROWS).enumerate() {
            for (group, scores) in scores.chunks_exact(F::GROUP).enumerate() {
                offers.offer_group(component, group, scores);
            }
        }
    }
}

fn offer<F: Scalar>(sink: &mut TopL<F>, scores: &[F]) {
    sink.reset(ROWS, WIDTH, COMPONENTS, None, false, false);
    Instructions::widest().run(Offer(sink, scores));
}

fn top_l<F: Scalar>() -> Work {
    let (scores, mut sink) = (all_scores::<F>(), TopL::default());
    Box::new(move || offer(&mut sink, &scores))
}

fn normalise<F: Scalar>() -> Work {
    let mut sink = TopL::default();
    offer(&mut sink, &all_scores::<F>());
    let (mut components, mut values, mut normalizers) =
        (vec![0; ROWS * WIDTH], vec![0.0; ROWS * WIDTH], vec![0.0; ROWS]);
    Box::new(move || sink.normalize(&mut components, &mut values, &mut normalizers).expect("finite"))
}

fn moments(d: usize) -> Work {
    let rows: Vec<f64> = (0..ROWS * d).map(|i| (i * 7919 % 1000) as f64 / 1000.0 - 0.5).collect();
    let (weights, mut packed, mut space) = (vec![0.5; ROWS], vec![0.0; packed_len(d)], Lines::default());
    Box::new(move || add_moments(&rows, &weights, d, &mut [], &mut packed, &mut space))
}

/// `exp` or `ln` of many numbers, to be compiled for each instruction set.
struct Elementary<'a, const EXP: bool>(&'a mut [f64]);

impl<const EXP: bool> WithSimd for Elementary<'_, EXP> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for value in self.0 {
            *value = if EXP { exp_of_nonpositive(-*value) } else { ln_of_positive(*value) };
        }
    }
}

fn elementary<const EXP: bool>() -> Work {
    let numbers: Vec<f64> = (1..=ROWS).map(|i| i as f64 / 16.0).collect();
    let mut values = numbers.clone();
    Box::new(move || {
        values.copy_from_slice(&numbers);
        Instructions::widest().run(Elementary::<EXP>(&mut values));
        black_box(&values);
    })
}

/// What is counted: callgrind knows it by its name.
#[inline(never)]
fn counted_by_callgrind(work: &mut Work) {
    black_box(work)();
}

/// The part of the program under valgrind.
fn run(name: &str) {
    let kernel = kernels().into_iter().find(|kernel| kernel.name == name).expect("a kernel of this name");
    let mut work = (kernel.make)();
    work();
    counted_by_callgrind(&mut work);
    println!("{:?}", Instructions::widest());
}

/// Instruction set and count of a kernel.
fn count(name: &str) -> Option<(String, f64)> {
    let done = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*counted_by_callgrind*"])
        .arg(env::current_exe().expect("a program knows itself"))
        .env(KERNEL, name)
        .env("RAYON_NUM_THREADS", "1")
        .output();
    let Output { stdout, stderr, .. } = done.ok()?;
    let stderr = String::from_utf8_lossy(&stderr);
    let number = stderr.lines().find_map(|line| line.split_once("Collected : "))?.1.parse().ok()?;
    Some((String::from_utf8_lossy(&stdout).trim().to_string(), number))
}

fn main() {
    if let Ok(name) = env::var(KERNEL) {
        return run(&name);
    }
    let wanted: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    println!(
        "{ROWS} rows, K = {COMPONENTS}, L = {WIDTH}, every score computed; the best components kept with the scores"
    );
    println!("{:<20} {:>10} {:>12} {:>12} {:>8} {:>10}", "", "", "instructions", "each", "", "necessary");
    for kernel in kernels() {
        if !wanted.is_empty() && !wanted.iter().any(|part| kernel.name.contains(part.as_str())) {
            continue;
        }
        let Some((set, instructions)) = count(&kernel.name) else {
            println!("left out: valgrind is not there, or knows not what this program needs");
            return;
        };
        let (multiply_adds, bytes) = kernel.needed;
        let width = match set.as_str() {
            "Avx2" => 32,
            "Neon" => 16,
            _ => bytes,
        };
        let necessary = (kernel.units * multiply_adds * bytes) as f64 / width as f64 / instructions;
        let share = if multiply_adds == 0 { String::new() } else { format!("{:.1} %", 100.0 * necessary) };
        let each = instructions / kernel.units as f64;
        println!("{:<20} {set:>10} {instructions:>12} {each:>12.2} a {:<6} {share:>10}", kernel.name, kernel.unit);
    }
}
