//! What fits and samplers both ask of data before work starts.

use crate::data::Demands;
use crate::error::{Error, Result};
use crate::likelihood;
use crate::model::Specification;
use crate::parameters::Value;
use crate::registry::Feature;

/// Checks that the likelihood takes rows of this form.
pub(crate) fn check_form(specification: &Specification, sparse: bool, demands: Demands) -> Result<()> {
    let refuse = |argument: &str, what: &str, reason: &str, allowed: &str| {
        let found = format!("{what} for {}", specification.likelihood.name);
        Err(Error::not_supported(argument, found, reason, allowed))
    };
    if sparse && !demands.sparse {
        return refuse("data", "a sparse array", "it treats zeros like any other value", "a dense array");
    }
    if specification.missing && !demands.missing {
        let allowed = format!("{}, or data without missing values", likelihood::supporting(Feature::Missing));
        return refuse(
            "missing",
            "missing=\"marginalize\"",
            "missing values cannot be integrated out exactly",
            &allowed,
        );
    }
    let named = likelihood::entry(&specification.likelihood.name)?.support(Feature::Missing);
    let given = &specification.likelihood.parameters.0;
    let is_chosen = |(name, word): &(&str, &str)| given.get(*name) == Some(&Value::Text((*word).to_owned()));
    if let Some((name, word)) = named.and_then(|support| support.unless).filter(is_chosen)
        && specification.missing
    {
        let found = format!("missing=\"marginalize\" for {}({name}={word:?})", specification.likelihood.name);
        let allowed = format!("another {name}, or data without missing values");
        return Err(Error::not_supported("missing", found, "missing values cannot be integrated out exactly", allowed));
    }
    if specification.missing && sparse {
        let reason = "values that are not stored are zero, not missing";
        return refuse("missing", "missing=\"marginalize\" on a sparse array", reason, "a dense array");
    }
    Ok(())
}

/// Checks that row indices fit in 32 bits.
pub(crate) fn check_numbers(argument: &str, n_rows: usize) -> Result<()> {
    if u32::try_from(n_rows).is_ok() {
        return Ok(());
    }
    Err(Error::invalid(argument, format!("{n_rows} rows"), format!("at most {} rows", u32::MAX)))
}
