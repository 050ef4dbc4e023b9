//! Copies records out of a state, in pieces that are released one after the other.

use std::borrow::Cow;

use super::rows::Dated;
use crate::snapshot::Moments;
use chronolog::memory::Refused;

/// The bytes of a piece, unless it is a single longer record.
const PIECE_BYTES: usize = 64 * 1024;

/// Records as they were, one behind the other, and their moments.
#[derive(Debug)]
pub struct CopiedRows {
    bytes: Vec<u8>,
    /// Where each ends.
    rows: Vec<(usize, Moments)>,
}

impl CopiedRows {
    /// Copies records.
    pub fn of(records: &[Dated<'_>]) -> Result<Vec<Self>, Refused> {
        let mut copies = Vec::new();
        let mut rest = records;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|one| {
                bytes += one.record.len();
                bytes <= PIECE_BYTES
            });
            let (piece, behind) = rest.split_at(fits.count().max(1));
            rest = behind;
            copies.try_reserve(1)?;
            copies.push(Self::copied(piece)?);
        }
        Ok(copies)
    }

    fn copied(records: &[Dated<'_>]) -> Result<Self, Refused> {
        let (mut bytes, mut rows) = (Vec::new(), Vec::new());
        bytes.try_reserve_exact(records.iter().map(|one| one.record.len()).sum())?;
        rows.try_reserve_exact(records.len())?;
        for one in records {
            bytes.extend_from_slice(&one.record);
            rows.push((bytes.len(), one.moments));
        }
        Ok(Self { bytes, rows })
    }

    /// All of them.
    pub fn rows(&self) -> impl Iterator<Item = Dated<'_>> {
        let mut start = 0;
        self.rows.iter().map(move |&(end, moments)| Dated {
            record: Cow::Borrowed(&self.bytes[std::mem::replace(&mut start, end)..end]),
            moments,
        })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How long all of them are.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(lengths: &[usize]) -> Vec<Vec<usize>> {
        let records: Vec<Vec<u8>> = lengths.iter().map(|&length| vec![b'x'; length]).collect();
        let dated: Vec<Dated<'_>> = records
            .iter()
            .map(|record| Dated {
                record: Cow::Borrowed(record),
                moments: Moments::UNKNOWN,
            })
            .collect();
        let copies = CopiedRows::of(&dated).expect("memory");
        let rows = |copy: &CopiedRows| copy.rows().map(|one| one.record.len()).collect();
        copies.iter().map(rows).collect()
    }

    #[test]
    fn records_are_copied_in_pieces() {
        assert_eq!(copied(&[]), Vec::<Vec<usize>>::new());
        assert_eq!(copied(&[1, 2, 3]), [vec![1, 2, 3]]);
        assert_eq!(
            copied(&[1, PIECE_BYTES + 1, 2]),
            [vec![1], vec![PIECE_BYTES + 1], vec![2]]
        );
        let many = copied(&[4096; 17]);
        assert_eq!(many.iter().map(Vec::len).collect::<Vec<_>>(), [16, 1]);
    }
}
