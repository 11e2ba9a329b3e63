//! Responsibilities for the infinitely many components beyond K, which all keep their prior (mathematics 2c; Kurihara,
//! Welling & Vlassis 2006).

use crate::process::Allocation;
use crate::process::sticks::Broken;
use crate::special::{digamma, digamma_difference};

/// Adds the tail to sticks with the prior Beta(a, b). The sticks beyond K have that prior too, so the log weights of
/// successive components beyond K fall by -e_0 = digamma(a + b) - digamma(b), which is 1 / b for a = 1, and their sum
/// is a geometric series. As one column its log weight is sum_l E log(1 - v_l) + e_v - ln(1 - exp e_0).
pub(super) fn attach(broken: Broken, tail: f64, (a, b): (f64, f64)) -> Allocation {
    let Broken { mut allocation, log_left } = broken;
    let first = digamma(a) - digamma(a + b);
    let fall = if a == 1.0 { 1.0 / b } else { digamma_difference(b, a) };
    let beyond = first - (-(-fall).exp_m1()).ln();
    allocation.tail_log_weight = Some(log_left + beyond);
    allocation.bound += tail * beyond;
    allocation
}
