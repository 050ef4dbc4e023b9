//! The faults that the scopes of records may have.

/// What is wrong with the scope of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeFault {
    /// It is none: only everyone sees the record.
    Malformed,
    /// It is another one than before.
    Changed,
}

impl ScopeFault {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Malformed => "malformed-scope",
            Self::Changed => "scope-changed",
        }
    }
}

/// A record whose scope is not what our writers would have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeFinding {
    /// What is wrong.
    pub fault: ScopeFault,
    /// Its id.
    pub id: String,
    /// The event that says so; `None` if the base does.
    pub seq: Option<u64>,
}
