//! A set of scopes that somebody sees.

/// The scopes that somebody sees in a state, by their numbers. It is good until the state changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sight {
    /// These, ascending; all if there is no list.
    some: Option<Vec<u32>>,
    /// Of all not these, ascending: what has expired.
    without: Vec<u32>,
}

impl Sight {
    /// Everything.
    pub const ALL: Self = Self {
        some: None,
        without: Vec::new(),
    };

    /// These scopes, ascending.
    pub fn of(scopes: Vec<u32>) -> Self {
        Self {
            some: Some(scopes),
            without: Vec::new(),
        }
    }

    /// All but these, ascending: what has expired.
    pub(super) fn but(without: Vec<u32>) -> Self {
        Self { some: None, without }
    }

    /// Whether there is nothing that is not seen.
    #[inline]
    pub fn is_all(&self) -> bool {
        self.some.is_none() && self.without.is_empty()
    }

    /// Whether there is no scope that is not seen, though what has expired in it may not be.
    pub fn is_of_all_scopes(&self) -> bool {
        self.some.is_none()
    }

    /// Whether records of a scope are seen.
    #[inline]
    pub fn sees(&self, scope: u32) -> bool {
        match &self.some {
            Some(some) => some.binary_search(&scope).is_ok(),
            None => self.without.is_empty() || self.without.binary_search(&scope).is_err(),
        }
    }

    /// The scopes that are seen; `None` if all are, but for what has expired.
    pub fn scopes(&self) -> Option<impl ExactSizeIterator<Item = u32> + '_> {
        self.some.as_ref().map(|some| some.iter().copied())
    }

    /// What has expired and is not seen, where all else is.
    pub(super) fn without(&self) -> &[u32] {
        &self.without
    }
}
