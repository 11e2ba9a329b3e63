//! Partial labels: the classes of the rows of a fit, where they are known (mathematics 3.2).

use crate::component::Class;
use crate::error::{Error, Result};

/// The classes of rows. They are numbered from 0 in the order of their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialLabels {
    rows: Vec<Class>,
    values: Vec<i64>,
    are_partial: bool,
}

impl PartialLabels {
    /// Reads one label for each of `n_rows` rows: the value of a class, from 0, or -1 for a row of unknown class. Rows
    /// of weight 0 count as rows of unknown class, because they are as if absent. `None` if no row has a class.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `labels`.
    pub fn new(given: &[i64], n_rows: usize, weights: Option<&[f64]>) -> Result<Option<Self>> {
        if given.len() != n_rows {
            let found = format!("of {} values", given.len());
            return Err(Error::invalid("labels", found, format!("of {n_rows} values, one for each row of the data")));
        }
        if let Some(row) = given.iter().position(|&label| label < -1) {
            let found = format!("{} in row {row}", given[row]);
            return Err(Error::invalid(
                "labels",
                found,
                "-1 for a row of unknown class, or an integer from 0 for a class",
            ));
        }
        let has_mass = |row: usize| weights.is_none_or(|weights| weights.get(row).is_some_and(|weight| *weight > 0.0));
        let known = |(row, &label): (usize, &i64)| Some(label).filter(|label| *label >= 0 && has_mass(row));
        let of_rows: Vec<Option<i64>> = given.iter().enumerate().map(known).collect();
        let mut values: Vec<i64> = of_rows.iter().flatten().copied().collect();
        values.sort_unstable();
        values.dedup();
        let number = |value: i64| values.partition_point(|&other| other < value) as u32;
        let are_partial = of_rows.iter().enumerate().any(|(row, value)| value.is_none() && has_mass(row));
        let rows = of_rows.into_iter().map(|value| value.map(number)).collect();
        Ok(Some(Self { rows, values, are_partial }).filter(|labels| !labels.values.is_empty()))
    }

    /// The class of each row, (n,).
    pub fn rows(&self) -> &[Class] {
        &self.rows
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.values.len()
    }

    /// Whether some rows of positive weight are of unknown class.
    pub fn are_partial(&self) -> bool {
        self.are_partial
    }

    /// The values of classes, -1 for none.
    pub fn values(&self, classes: &[Class]) -> Vec<i64> {
        classes.iter().map(|&class| self.value(class)).collect()
    }

    /// The value of a class, -1 for none.
    fn value(&self, class: Class) -> i64 {
        class.and_then(|class| self.values.get(class as usize).copied()).unwrap_or(-1)
    }

    /// The classes of the `k` components of an earlier fit, from their values (none if all components are free). A
    /// component of a class that no row has any more is free.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `init` if a class has no component.
    pub fn numbered(&self, values: &[i64], k: usize) -> Result<Vec<Class>> {
        if let Some(value) = self.values.iter().find(|value| !values.contains(value)) {
            let found = format!("a fit without a component of class {value}");
            return Err(Error::invalid("init", found, "a fit that has a component of every class in `labels`"));
        }
        let number = |value: &i64| self.values.binary_search(value).ok().map(|number| number as u32);
        let mut classes: Vec<Class> = values.iter().map(number).collect();
        classes.resize(k, None);
        Ok(classes)
    }

    /// The class of each of `k` components to which rows are assigned by `components`: that of their rows, if any has
    /// one.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for `init` if rows of two classes share a component.
    pub fn of_components(&self, components: &[u32], k: usize) -> Result<Vec<Class>> {
        let mut classes = vec![None; k];
        for (&component, &class) in components.iter().zip(&self.rows) {
            let Some(of_component) = classes.get_mut(component as usize).filter(|_| class.is_some()) else { continue };
            if of_component.is_some_and(|other| Some(other) != class) {
                let values = (self.value(*of_component), self.value(class));
                let found = format!("component {component} for rows of the classes {} and {}", values.0, values.1);
                return Err(Error::invalid("init", found, "components whose rows have one class in `labels`, or none"));
            }
            *of_component = class;
        }
        Ok(classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_numbered_by_value() {
        let labels = PartialLabels::new(&[30, -1, 7, 30, 9], 5, None).expect("valid").expect("classes");
        assert_eq!(labels.rows(), [Some(2), None, Some(0), Some(2), Some(1)]);
        assert_eq!((labels.n_classes(), labels.are_partial()), (3, true));
        assert_eq!(labels.values(&[None, Some(0), Some(2), Some(3)]), [-1, 7, 30, -1]);
    }

    #[test]
    fn rows_without_weight_have_no_class() {
        let labels = PartialLabels::new(&[5, 0, -1], 3, Some(&[0.0, 2.0, 1.0])).expect("valid").expect("classes");
        assert_eq!((labels.rows(), labels.value(Some(0))), (&[None, Some(0), None][..], 0));
        assert_eq!(PartialLabels::new(&[5, -1], 2, Some(&[0.0, 2.0])), Ok(None));
        assert_eq!(PartialLabels::new(&[-1, -1], 2, None), Ok(None));
    }

    #[test]
    fn what_are_no_labels_is_refused() {
        for (given, n, found) in
            [(&[0, 1][..], 3, "of 2 values"), (&[0, -2], 2, "-2 in row 1"), (&[], 1, "of 0 values")]
        {
            let message = PartialLabels::new(given, n, None).expect_err("no labels").to_string();
            assert!(message.contains("labels") && message.contains(found), "{message}");
        }
    }

    #[test]
    fn components_of_an_earlier_fit_keep_their_classes() {
        let labels = PartialLabels::new(&[4, -1, 6], 3, None).expect("valid").expect("classes");
        assert_eq!(labels.numbered(&[6, -1, 9, 4, 4], 5), Ok(vec![Some(1), None, None, Some(0), Some(0)]));
        for classes in [&[][..], &[4, 4]] {
            let message = labels.numbered(classes, 2).expect_err("class 6 has no component").to_string();
            assert!(message.contains("without a component of class"), "{message}");
        }
    }

    #[test]
    fn components_take_the_class_of_their_rows() {
        let labels = PartialLabels::new(&[4, -1, 6, 4, -1], 5, None).expect("valid").expect("classes");
        let of = |components: &[u32], k| labels.of_components(components, k);
        assert_eq!(of(&[0, 2, 3, 1, 0], 5), Ok(vec![Some(0), Some(0), None, Some(1), None]));
        let message = of(&[0, 2, 0, 1, 0], 3).expect_err("two classes").to_string();
        assert!(message.contains("component 0 for rows of the classes 4 and 6"), "{message}");
    }
}
