//! The writer of a draft, and the terms of its writing: for whom it is done, and whether it is an import.

use std::sync::Arc;

use crate::error::Result;
use crate::scope::{SeenAs, Viewer, check, given, stamp};

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
    /// The scope of whoever writes as it is spelled, since every record is stamped with it; nothing without names.
    spelled: Arc<[u8]>,
}

impl Author {
    /// Somebody without further terms.
    pub fn plainly(writer: &Arc<Viewer>) -> Self {
        let spelled = match writer.who() {
            Viewer::Named { scope, .. } if !scope.is_shared() => scope.spelled().into(),
            _ => Arc::default(),
        };
        Self {
            // What has expired may be written anew, seen or not.
            writer: match writer.sees_expired() {
                true => Arc::new(writer.who().clone()),
                false => Arc::clone(writer),
            },
            spelled,
            ..Self::default()
        }
    }

    /// Is that one from now on. Mostly it was already: whoever writes does so again and again.
    pub fn take_after(&mut self, other: &Self) {
        let for_whom = |author: &Self| author.acts_for.as_ref().map(Arc::as_ptr);
        let is_same = Arc::ptr_eq(&self.writer, &other.writer)
            && Arc::ptr_eq(&self.spelled, &other.spelled)
            && for_whom(self) == for_whom(other)
            && (self.is_public, self.is_import) == (other.is_public, other.is_import);
        if !is_same {
            *self = other.clone();
        }
    }

    /// The scope of whoever writes as it is spelled in a record; nothing without names.
    pub fn spelled(&self) -> &[u8] {
        &self.spelled
    }

    /// The same for records that were in a store before.
    #[must_use]
    pub fn importing(&self, is_import: bool) -> Self {
        Self {
            is_import,
            ..self.clone()
        }
    }

    /// Whether a name of a level was given, or need not be.
    pub fn gives(&self, level: usize) -> bool {
        match self.acts_for.as_ref().unwrap_or(&self.writer).who() {
            Viewer::Named { scope, .. } => self.is_public || scope.names()[level].is_some(),
            _ => true,
        }
    }

    /// Sees to it that `data`, which stands at the end of a text, carries the scope that it should; says whether that is none.
    ///
    /// # Errors
    /// `Invalid` if it carries another one.
    pub fn settle_scope(&self, text: &mut Vec<u8>, start: usize) -> Result<bool> {
        match &*self.writer {
            // What is one's own may carry another name more: whoever writes it back changes what it says, not whose it is.
            Viewer::Named { .. } => stamp(text, start, &self.spelled, |given| {
                self.writer.sees(given) == Some(SeenAs::Own)
            })?,
            _ if self.is_import => {}
            _ => check(&text[start..])?,
        }
        Ok(given(&text[start..]).is_none())
    }
}
