//! What do the records that a search may find say of the tokens of its question?
//!
//! Rows of codes are rows like any others, so which of them may be found is known as for vectors. They are only read one by
//! one: of all records where these are few, or else of those that words and vectors put forward.

use super::nearby::Nearby;
use crate::error::{At, Error, Result};
use crate::store::vectors::records::format::Bound;
use crate::store::vectors::records::index::BLOCK_ROWS;
use crate::store::vectors::rows::blocks::Ready;
use crate::store::vectors::rows::check::row_bytes;
use crate::vector::Cpu;
use crate::vector::tokens::TokenQuery;

/// The space that is asked for tokens when none is named.
pub(in crate::store) const TOKEN_SPACE: &str = "tokens";

/// The token vectors of a question.
#[derive(Clone, Debug, Default)]
pub struct TokenQuestion {
    /// The space that they are compared with, or `tokens`.
    pub space: Option<String>,
    /// The vectors, end to end.
    pub vectors: Vec<f32>,
    /// How many components each has.
    pub dim: usize,
}

impl TokenQuestion {
    /// The space that they are compared with.
    pub(in crate::store) fn space(&self) -> &str {
        self.space.as_deref().unwrap_or(TOKEN_SPACE)
    }

    fn check(&self, bound: &Bound) -> Result<()> {
        let Bound { name, tokens, .. } = bound;
        if *tokens == 0 {
            return Err(Error::argument(
                "token_space",
                format!("{name:?} holds vectors, no codes of tokens"),
            ));
        }
        if self.dim != *tokens {
            let need = format!("have {tokens} components, as those of {name:?} had");
            return Err(Error::must("query_tokens", need, self.dim));
        }
        if self.vectors.is_empty() {
            return Err(Error::must("query_tokens", "have at least one row", 0));
        }
        match self.vectors.iter().find(|value| !value.is_finite()) {
            Some(odd) => Err(Error::must("query_tokens", "be finite in all components", odd)),
            None => Ok(()),
        }
    }
}

/// The rows of codes of a search.
pub(in crate::store) struct Sayings {
    nearby: Nearby,
    ready: Ready,
    query: TokenQuery,
}

impl Nearby {
    /// Goes on with the tokens of a question.
    ///
    /// # Errors
    /// `Argument` for vectors of another dimension or that are not finite, and for a space of vectors; `Io`.
    pub fn ask_tokens(self, tokens: &TokenQuestion) -> Result<Sayings> {
        let search = self.search();
        tokens.check(&search.shelves.bound)?;
        let ready = search.ready().at(&search.shelves.rows_path())?;
        Ok(Sayings {
            query: TokenQuery::new(&tokens.vectors, tokens.dim, Cpu::best()),
            nearby: self,
            ready,
        })
    }
}

impl Sayings {
    /// The rows that it was made of.
    pub fn nearby(&self) -> &Nearby {
        &self.nearby
    }

    /// The question.
    pub fn query(&self) -> &TokenQuery {
        &self.query
    }

    /// The slots of all records that may be found, unless these are more.
    pub fn few(&self, most: usize) -> Option<Vec<u32>> {
        let search = self.nearby.search();
        let owner = |row: u32| search.blocks[row as usize / BLOCK_ROWS].owners[row as usize % BLOCK_ROWS];
        let rows = &search.filter.rows;
        (rows.len() <= most as u64).then(|| rows.iter().map(owner).collect())
    }

    /// Adds the product of each token with a record; whether it has codes that can be believed.
    pub fn products(&self, slot: u32, products: &mut Vec<i32>) -> bool {
        let bound = &self.nearby.search().shelves.bound;
        let row = self.nearby.believed(&self.ready, slot);
        let Some(bytes) = row.and_then(|row| row_bytes(self.ready.rows.bytes(), row, bound)) else {
            return false;
        };
        self.query.best(bytes, products);
        true
    }

    /// Whether the codes of a record are still what the log says.
    pub fn check_again(&self, slot: u32) -> bool {
        self.nearby.is_still_right(&self.ready, slot)
    }
}
