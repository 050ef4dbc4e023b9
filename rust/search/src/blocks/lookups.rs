//! Looks up and counts blocks, links and contradictions in the columns.

use super::columns::{BlockColumns, BlockStanding};
use super::links::Links;
use super::shape::BlockMisfit;
use chronomemory_state::state::Sight;
use roaring::RoaringBitmap;

/// How many links and contradictions are seen. Both ends of a link are seen and neither is archived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Links that count.
    pub links: usize,
    /// Unresolved contradictions.
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

    /// The ids of shown blocks that have a tag like the pattern, of those that are seen.
    pub fn tagged(&self, pattern: &str, sight: &Sight) -> Vec<String> {
        let few = self.members.few(sight);
        let rows = self.tagged_like(&[pattern.to_owned()], few.as_deref());
        let is_shown = |row: &u32| self.standing[*row as usize].is_shown() && self.is_in(*row, sight);
        let shown = rows.iter().filter(is_shown);
        shown.map(|row| self.ids.name(row).to_owned()).collect()
    }

    /// The links of these blocks that are seen, as pairs of ids; those of archived blocks too.
    pub fn links_of(&self, ids: &[String], sight: &Sight) -> Vec<(String, String)> {
        self.pairs(&self.edges, ids, sight)
    }

    /// The blocks that these are becoming linked with: for each of them the others that are seen.
    pub fn forming_with(&self, ids: &[String], sight: &Sight) -> Vec<Vec<String>> {
        let others = |id: &String| {
            let row = self.ids.find(id);
            let rows = row.into_iter().flat_map(|row| self.forming.of(row));
            let seen = rows.filter(|&other| self.is_in(other, sight));
            seen.map(|other| self.ids.name(other).to_owned()).collect()
        };
        ids.iter().map(others).collect()
    }

    /// The unresolved contradictions of these blocks, likewise.
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

    /// The slots of the active blocks that are seen.
    pub fn active_slots(&self, sight: &Sight) -> RoaringBitmap {
        let all = || (0..self.standing.len() as u32).collect();
        let rows = self.members.few(sight).unwrap_or_else(all).into_iter();
        let is_active = |row: &u32| self.standing[*row as usize] == BlockStanding::Active && self.is_in(*row, sight);
        self.slots_of(rows.filter(is_active))
    }

    /// The id of the block in a slot.
    pub fn id_in(&self, slot: u32) -> Option<&str> {
        self.row_in(slot).map(|row| self.ids.name(row))
    }

    /// The records that have an id of this face and that no verb of it can use, each with the reason.
    pub fn misfits(&self, sight: &Sight) -> Vec<(String, BlockMisfit)> {
        let seen = self.misfits.values().filter(|(scope, ..)| sight.sees(*scope));
        seen.map(|(_, id, misfit)| (id.clone(), misfit.clone())).collect()
    }
}
