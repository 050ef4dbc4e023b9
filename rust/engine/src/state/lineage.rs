//! Is this still the state that something was derived from?

use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A number that no other state has; a copy is another state.
#[derive(Debug)]
pub struct Lineage(u64);

impl Lineage {
    /// The number.
    pub fn number(&self) -> u64 {
        self.0
    }
}

impl Default for Lineage {
    fn default() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Clone for Lineage {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::Lineage;

    #[test]
    fn a_copy_is_another() {
        let one = Lineage::default();
        assert_ne!(one.number(), one.clone().number());
        assert_ne!(one.number(), 0);
    }
}
