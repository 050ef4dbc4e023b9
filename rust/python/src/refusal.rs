//! The place in a Python value that cannot be written, and the reason.

use pyo3::prelude::*;

use crate::enter::invalid_at;

/// One step into a value.
pub enum Step {
    /// To a member of an object.
    Key(String),
    /// To an element of an array.
    Place(usize),
}

/// Why a value cannot be written. It is made where that is noticed, and hears on the way out where that was.
pub struct Refusal(Box<RefusalCause>);

enum RefusalCause {
    /// Why, and the steps to it, the innermost first.
    Value { reason: String, steps: Vec<Step> },
    /// The same for a whole field.
    Field { reason: String },
    /// Python raised something of its own.
    Raised(PyErr),
}

impl From<PyErr> for Refusal {
    fn from(fault: PyErr) -> Self {
        Self(Box::new(RefusalCause::Raised(fault)))
    }
}

impl Refusal {
    /// A refusal of the value at hand.
    pub fn new(reason: String) -> Self {
        Self(Box::new(RefusalCause::Value {
            reason,
            steps: Vec::new(),
        }))
    }

    /// A refusal of the field around it.
    pub fn of_field(reason: String) -> Self {
        Self(Box::new(RefusalCause::Field { reason }))
    }

    /// Says which member or element of something it was.
    #[must_use]
    pub fn inside(mut self, step: impl FnOnce() -> Step) -> Self {
        if let RefusalCause::Value { steps, .. } = &mut *self.0 {
            steps.push(step());
        }
        self
    }

    /// The error for whoever asked to write the field.
    pub fn told(self, py: Python<'_>, field: &str) -> PyErr {
        match *self.0 {
            RefusalCause::Raised(fault) => fault,
            RefusalCause::Field { reason } => invalid_at(py, field, field, &reason),
            RefusalCause::Value { reason, steps } => invalid_at(py, field, &path_of(field, &steps), &reason),
        }
    }
}

/// A path as a person writes it: `data.items[3].price`, and quoted where a key would be misread.
fn path_of(field: &str, steps: &[Step]) -> String {
    let mut path = field.to_owned();
    for step in steps.iter().rev() {
        match step {
            Step::Place(place) => path.push_str(&format!("[{place}]")),
            Step::Key(key) => {
                let is_plain =
                    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '@'));
                path.push('.');
                path.push_str(&if is_plain { key.clone() } else { format!("{key:?}") });
            }
        }
    }
    path
}
