//! Responsibilities for the infinitely many components beyond K, which all keep their prior (mathematics 2c; Kurihara,
//! Welling & Vlassis 2006).

use crate::process::Allocation;
use crate::process::sticks::Broken;
use crate::special::digamma;

/// Adds the tail to sticks with the prior Beta(1, `concentration`). The sticks beyond K have that prior too, so the log
/// weights of successive components beyond K fall by -e_0 = 1 / concentration, and their sum is a geometric series. As
/// one column its log weight is sum_l E log(1 - v_l) + e_v - ln(1 - exp e_0).
pub(super) fn attach(broken: Broken, tail: f64, concentration: f64) -> Allocation {
    let Broken { mut allocation, log_left } = broken;
    let first = digamma(1.0) - digamma(1.0 + concentration);
    let beyond = first - (-(-1.0 / concentration).exp_m1()).ln();
    allocation.tail_log_weight = Some(log_left + beyond);
    allocation.bound += tail * beyond;
    allocation
}
