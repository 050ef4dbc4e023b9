//! Lookups and counts of blocks, links and contradictions.

use super::columns::{BlockColumns, BlockStatus};
use super::links::Links;
use super::shape::BlockMisfit;
use chronomemory_state::state::Sight;
use roaring::RoaringBitmap;

/// Counts of visible links and contradictions whose ends are both visible and shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Links that count.
    pub links: usize,
    /// Unresolved contradictions.
    pub contradictions: usize,
    /// Links that occurred in too few sessions to count.
    pub forming: usize,
    /// Blocks in these sessions.
    pub in_sessions: usize,
}

impl BlockColumns {
    /// The counts for a viewer; `sessions` are the numbers of the scopes with a session, sorted.
    pub fn census(&self, sight: &Sight, sessions: &[u32]) -> Census {
        let is_shown = |row: u32| self.status[row as usize].is_shown() && self.is_in(row, sight);
        let all = || (0..self.status.len() as u32).collect();
        let mut counted = Census::default();
        let rows: Vec<u32> = self.members.few(sight).unwrap_or_else(all);
        for row in rows.into_iter().filter(|&row| is_shown(row)) {
            // Each pair is found at both of its ends.
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

    /// The ids of visible shown blocks with a tag that matches the pattern.
    pub fn tagged(&self, pattern: &str, sight: &Sight) -> Vec<String> {
        let few = self.members.few(sight);
        let rows = self.tagged_like(&[pattern.to_owned()], few.as_deref());
        let is_shown = |row: &u32| self.status[*row as usize].is_shown() && self.is_in(*row, sight);
        let shown = rows.iter().filter(is_shown);
        shown.map(|row| self.ids.name(row).to_owned()).collect()
    }

    /// The visible links of these blocks as pairs of ids, including those of archived blocks.
    pub fn links_of(&self, ids: &[String], sight: &Sight) -> Vec<(String, String)> {
        self.pairs(&self.edges, ids, sight)
    }

    /// For each of these blocks the visible blocks with which a link is forming.
    pub fn forming_with(&self, ids: &[String], sight: &Sight) -> Vec<Vec<String>> {
        let others = |id: &String| {
            let row = self.ids.find(id);
            let rows = row.into_iter().flat_map(|row| self.forming.of(row));
            let seen = rows.filter(|&other| self.is_in(other, sight));
            seen.map(|other| self.ids.name(other).to_owned()).collect()
        };
        ids.iter().map(others).collect()
    }

    /// The visible unresolved contradictions of these blocks as pairs of ids.
    pub fn contradictions_of(&self, ids: &[String], sight: &Sight) -> Vec<(String, String)> {
        self.pairs(&self.contradictions, ids, sight)
    }

    fn pairs(&self, links: &Links, ids: &[String], sight: &Sight) -> Vec<(String, String)> {
        let name = |row: u32| self.ids.name(row).to_owned();
        let rows = ids.iter().filter_map(|id| self.ids.find(id));
        rows.flat_map(|row| links.of(row, sight).map(move |(link, _)| (row, link)))
            .filter(|(row, link)| self.is_in(link.across(*row), sight))
            .map(|(_, link)| (name(link.a), name(link.b)))
            .collect()
    }

    /// The slots of the visible active blocks.
    pub fn active_slots(&self, sight: &Sight) -> RoaringBitmap {
        let all = || (0..self.status.len() as u32).collect();
        let rows = self.members.few(sight).unwrap_or_else(all).into_iter();
        let is_active = |row: &u32| self.status[*row as usize] == BlockStatus::Active && self.is_in(*row, sight);
        self.slots_of(rows.filter(is_active))
    }

    /// The id of the block in a slot.
    pub fn id_in(&self, slot: u32) -> Option<&str> {
        self.row_in(slot).map(|row| self.ids.name(row))
    }

    /// The visible records with an id of this face that do not have its form, each with the reason.
    pub fn misfits(&self, sight: &Sight) -> Vec<(String, BlockMisfit)> {
        let seen = self.misfits.values().filter(|(scope, ..)| sight.sees(*scope));
        seen.map(|(_, id, misfit)| (id.clone(), misfit.clone())).collect()
    }
}
