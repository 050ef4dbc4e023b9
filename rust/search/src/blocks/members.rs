//! A column with the scope of each block.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use chronomemory_state::state::Sight;

/// No scope: the block was only mentioned.
const NONE: u32 = u32::MAX;
/// A viewer who sees at most this part (1/16) of the rows gets a list of them.
const LISTED_SHARE: usize = 16;

/// The scope of each row, and the rows of each scope.
#[derive(Default)]
pub struct RowScopes {
    scopes: Vec<u32>,
    rows: HashMap<u32, Vec<u32>, RandomState>,
}

impl RowScopes {
    /// Sets the scope of a row.
    pub fn set(&mut self, row: u32, scope: u32) {
        let at = row as usize;
        if at >= self.scopes.len() {
            self.scopes.resize(at + 1, NONE);
        }
        let before = std::mem::replace(&mut self.scopes[at], scope);
        if before == scope {
            return;
        }
        if let Some(rows) = self.rows.get_mut(&before) {
            rows.retain(|known| *known != row);
        }
        let rows = self.rows.entry(scope).or_default();
        let place = rows.partition_point(|known| *known < row);
        rows.insert(place, row);
    }

    /// The scope of a row.
    pub fn of(&self, row: u32) -> Option<u32> {
        self.scopes.get(row as usize).copied().filter(|&scope| scope != NONE)
    }

    /// The visible rows, ascending, if they are few.
    pub fn few(&self, sight: &Sight) -> Option<Vec<u32>> {
        let lists: Vec<&Vec<u32>> = sight.scopes()?.filter_map(|scope| self.rows.get(&scope)).collect();
        let number: usize = lists.iter().map(|rows| rows.len()).sum();
        if number > self.scopes.len() / LISTED_SHARE {
            return None;
        }
        let mut rows: Vec<u32> = lists.into_iter().flatten().copied().collect();
        // The stable sort is fast on concatenated sorted runs.
        rows.sort();
        Some(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_listed_by_their_scope_while_they_are_few() {
        let mut members = RowScopes::default();
        for row in 0..100 {
            members.set(row, u32::from(row % 50 == 7) * 5);
        }
        let ours = Sight::of(vec![5]);
        assert_eq!(members.few(&ours), Some(vec![7, 57]));
        assert_eq!(members.few(&Sight::of(vec![0])), None);
        assert_eq!(members.few(&Sight::of(vec![9])), Some(vec![]));
        assert_eq!(members.few(&Sight::ALL), None);
        members.set(7, 0);
        members.set(3, 5);
        assert_eq!(members.few(&ours), Some(vec![3, 57]));
        assert_eq!(
            (members.of(7), members.of(3), members.of(100)),
            (Some(0), Some(5), None)
        );
    }
}
