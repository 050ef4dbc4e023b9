//! Tells whether anything was erased since something was read from a store.

use super::Engine;
use chronolog::error::{Error, Result};

/// Who reads record after record looks after so many of them whether others erased some.
const RECORDS_BETWEEN_LOOKS: usize = 64;

/// What was read from a store at some moment is good until something is erased.
pub struct Unchanged {
    engine: Engine,
    erasures: usize,
}

impl Engine {
    /// What is read from now on, as long as nothing is erased.
    ///
    /// # Errors
    /// As [`Engine::read`].
    pub fn unchanged(&self) -> Result<Unchanged> {
        Ok(Unchanged {
            engine: self.on_terms(self.terms),
            erasures: self.erasures(true)?,
        })
    }
}

impl Unchanged {
    /// Refuses what was read before something was erased, here or by others: it may hold that. Who has closed the store asks
    /// nobody any more.
    ///
    /// # Errors
    /// `HistoryUnavailable` with the seq that is given; `Io`, `Forked`, `InProgress`.
    pub fn check(&self, seq: u64) -> Result<()> {
        self.check_known(seq, true)
    }

    /// The same for who goes through many records and has had so many: what others erased is looked for now and then.
    ///
    /// # Errors
    /// As [`Unchanged::check`].
    pub fn check_on_the_way(&self, records: usize) -> Result<()> {
        self.check_known(0, records.is_multiple_of(RECORDS_BETWEEN_LOOKS))
    }

    fn check_known(&self, seq: u64, follows: bool) -> Result<()> {
        match self.engine.erasures(follows) {
            Ok(now) if now != self.erasures => Err(Error::HistoryUnavailable {
                first_seq: seq,
                reason: "records were erased since this was read; ask for it again".to_owned(),
            }),
            Ok(_) | Err(Error::Closed) => Ok(()),
            Err(fault) => Err(fault),
        }
    }
}
