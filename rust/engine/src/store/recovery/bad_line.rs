//! What is known of a line that cannot be read, or does not belong where it stands.

use chronolog::event::line::Fault;

/// A line that cannot be read, or does not belong where it stands.
pub(in crate::store) struct BadLine {
    /// Where it stands.
    pub offset: u64,
    /// Its bytes.
    pub text: Vec<u8>,
    /// Its physical line.
    pub number: u64,
    /// The seq that it claims.
    pub seq: Option<u64>,
    /// What is wrong.
    pub reason: String,
    /// It is an event with the right hash, but not here.
    pub is_whole: bool,
    /// And it is part of the chain nowhere: it may stand in the place of a true one.
    pub is_foreign: bool,
    /// It is one of several that follow each other, beside others that do so too: nothing tells which of them are true.
    pub is_branch: bool,
}

impl BadLine {
    /// Whether it stands for an event that is lost: it is not one that stands elsewhere too.
    pub fn is_lost(&self) -> bool {
        !self.is_whole || self.is_foreign
    }

    /// A line that cannot be read.
    pub fn unreadable(offset: u64, text: &[u8], number: u64, fault: &Fault) -> Self {
        Self {
            offset,
            text: text.to_vec(),
            number,
            seq: fault.seq,
            reason: fault.reason.clone(),
            is_whole: false,
            is_foreign: false,
            is_branch: false,
        }
    }
}
