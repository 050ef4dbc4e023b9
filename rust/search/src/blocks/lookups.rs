//! Looks up blocks, links and contradictions by name in the columns.

use super::columns::BlockColumns;
use super::links::Links;
use super::shape::BlockMisfit;
use chronomemory_state::state::Sight;

impl BlockColumns {
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

    /// The records that have an id of this face and that no verb of it can use, each with the reason.
    pub fn misfits(&self, sight: &Sight) -> Vec<(String, BlockMisfit)> {
        let seen = self.misfits.values().filter(|(scope, ..)| sight.sees(*scope));
        seen.map(|(_, id, misfit)| (id.clone(), misfit.clone())).collect()
    }
}
