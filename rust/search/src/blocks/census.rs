//! Counts the links and contradictions that somebody sees, and the blocks that lie in sessions.

use super::columns::BlockColumns;
use super::links::Links;
use chronomemory_state::state::Sight;

/// What there is of that. Both ends of a link are seen and neither is archived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Links that count.
    pub links: usize,
    /// Contradictions that nobody resolved.
    pub contradictions: usize,
    /// Links that were seen in too few sessions to count.
    pub forming: usize,
    /// Blocks in these sessions.
    pub in_sessions: usize,
}

impl BlockColumns {
    /// Counts what is seen; `sessions` are the scopes that name one.
    pub fn census(&self, sight: &Sight, sessions: &[u32]) -> Census {
        let is_shown = |row: u32| self.standing[row as usize].is_shown() && self.is_in(row, sight);
        let all = || (0..self.standing.len() as u32).collect();
        let mut counted = Census::default();
        let rows: Vec<u32> = self.members.few(sight).unwrap_or_else(all);
        for row in rows.into_iter().filter(|&row| is_shown(row)) {
            // Each pair is met at both of its ends.
            let pairs = |links: &Links| {
                let others = links.of(row, sight).map(|(link, _)| link.across(row));
                others.filter(|&other| other > row && is_shown(other)).count()
            };
            counted.links += pairs(&self.edges);
            counted.contradictions += pairs(&self.contradictions);
            let forming = self.forming.of(row);
            counted.forming += forming.filter(|&other| other > row && is_shown(other)).count();
            let scope = self.members.of(row);
            counted.in_sessions += usize::from(scope.is_some_and(|scope| sessions.binary_search(&scope).is_ok()));
        }
        counted
    }
}
