//! Who writes, and on what terms?

use std::sync::Arc;

use crate::error::Result;
use crate::scope::{Viewer, check, is_own, stamp};

/// Whoever writes a draft.
#[derive(Clone, Debug, Default)]
pub struct Author {
    /// Who.
    pub writer: Arc<Viewer>,
    /// For whom that is done, if it is done for somebody else: the names that a store requires are asked of that one.
    pub acts_for: Option<Arc<Viewer>>,
    /// Whether that one means all who use the store, where a store requires names.
    pub is_public: bool,
    /// Whether the records were in a store before: what everyone brings back carries what it carried, a scope or not.
    pub is_import: bool,
}

impl Author {
    /// Somebody without further terms.
    pub fn plainly(writer: &Arc<Viewer>) -> Self {
        Self {
            writer: Arc::clone(writer),
            acts_for: None,
            is_public: false,
            is_import: false,
        }
    }

    /// Whether a name of a level was given, or need not be.
    pub fn gives(&self, level: usize) -> bool {
        match &**self.acts_for.as_ref().unwrap_or(&self.writer) {
            Viewer::Everyone => true,
            Viewer::Named { scope, .. } => self.is_public || scope.names()[level].is_some(),
        }
    }

    /// Sees to it that `data`, which stands at the end of a text, carries the scope that it should.
    ///
    /// # Errors
    /// `Invalid` if it carries another one.
    pub fn settle_scope(&self, text: &mut Vec<u8>, start: usize) -> Result<()> {
        match &*self.writer {
            Viewer::Everyone if self.is_import => Ok(()),
            Viewer::Everyone => check(&text[start..]),
            // What is one's own may carry another name more: whoever writes it back changes what it says, not whose it is.
            Viewer::Named { .. } if is_own(&self.writer, &text[start..]) => Ok(()),
            Viewer::Named { scope, .. } => stamp(text, start, scope),
        }
    }
}
