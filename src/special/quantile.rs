//! Quantiles of samples.

/// The quantile of ascending values, interpolated linearly (Hyndman & Fan 1996, definition 7).
pub fn quantile(ascending: &[f64], probability: f64) -> f64 {
    let place = probability * (ascending.len() - 1) as f64;
    let below = place as usize;
    let above = (below + 1).min(ascending.len() - 1);
    let share = place - below as f64;
    ascending[below] + share * (ascending[above] - ascending[below])
}
