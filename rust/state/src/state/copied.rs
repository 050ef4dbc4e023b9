//! Copies records out of a state, several together, for whoever holds one of them for long.

use std::borrow::Cow;

use super::rows::Dated;
use crate::snapshot::Moments;
use chronolog::memory::Refused;

/// So much is kept at most for a record that somebody holds, unless it is longer itself.
const COPY_BYTES: usize = 64 * 1024;
/// A longer record is worth no copy that somebody keeps.
const KEPT_BYTES: usize = 4 * 1024;

/// Records as they were, one behind the other, and their moments.
#[derive(Debug)]
pub struct CopiedRows {
    bytes: Vec<u8>,
    /// Where each ends.
    rows: Vec<(usize, Moments)>,
}

impl CopiedRows {
    /// Copies records, so many at most together. A long one stands alone.
    pub fn of(records: &[Dated<'_>], most: usize) -> Result<Vec<Self>, Refused> {
        let mut copies = Vec::new();
        let mut rest = records;
        while !rest.is_empty() {
            let (together, behind) = rest.split_at(together(rest, most));
            rest = behind;
            copies.try_reserve(1)?;
            copies.push(Self::copied(together)?);
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

    /// Whether a record is so short that a copy of it is kept: of a longer one its digest has to do.
    #[must_use]
    pub fn keeps(record: &[u8]) -> bool {
        record.len() <= KEPT_BYTES
    }

    /// One of them, by its place.
    #[must_use]
    pub fn row(&self, place: usize) -> Option<Dated<'_>> {
        let &(end, moments) = self.rows.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| self.rows[before].0);
        Some(Dated {
            record: Cow::Borrowed(&self.bytes[start..end]),
            moments,
        })
    }

    /// All of them.
    pub fn rows(&self) -> impl Iterator<Item = Dated<'_>> {
        (0..self.rows.len()).filter_map(|place| self.row(place))
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

/// How many of the first records share a copy.
fn together(records: &[Dated<'_>], most: usize) -> usize {
    let mut bytes = 0;
    let mut fits = |one: &&Dated<'_>| {
        bytes += one.record.len();
        CopiedRows::keeps(&one.record) && bytes <= COPY_BYTES
    };
    let most = records.len().min(most);
    records[..most].iter().take_while(&mut fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(lengths: &[usize], most: usize) -> Vec<Vec<usize>> {
        let records: Vec<Vec<u8>> = lengths.iter().map(|&length| vec![b'x'; length]).collect();
        let dated: Vec<Dated<'_>> = records
            .iter()
            .map(|record| Dated {
                record: Cow::Borrowed(record),
                moments: Moments::UNKNOWN,
            })
            .collect();
        let copies = CopiedRows::of(&dated, most).expect("memory");
        let told: Vec<Vec<usize>> = copies
            .iter()
            .map(|copy| copy.rows().map(|one| one.record.len()).collect())
            .collect();
        assert!(copies.iter().all(|copy| copy.row(copy.len()).is_none()));
        told
    }

    #[test]
    fn short_records_share_a_copy_and_long_ones_stand_alone() {
        assert_eq!(copied(&[], 8), Vec::<Vec<usize>>::new());
        assert_eq!(copied(&[1, 2, 3], 2), [vec![1, 2], vec![3]]);
        assert_eq!(
            copied(&[1, KEPT_BYTES + 1, 2], 8),
            [vec![1], vec![KEPT_BYTES + 1], vec![2]]
        );
        let many = copied(&[KEPT_BYTES; 17], 100);
        assert_eq!(many.iter().map(Vec::len).collect::<Vec<_>>(), [16, 1]);
    }
}
