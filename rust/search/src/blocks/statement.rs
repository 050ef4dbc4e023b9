//! Looks up the records of what a recall found, and puts a newer value of a subject before the older ones.

use super::ask::{Ask, BlockAnswer, FoundBlock};
use super::fields::{block_key, plain, quoted};
use super::pieces::Pieces;
use super::shape::Head;
use chronolog::event::stamp::read_short;
use chronolog::scope::Viewer;
use chronomemory_state::state::{State, spelled};

/// Statements of one subject begin with at least so many equal pieces, and with so large a share of the longer one.
const SAME_START: usize = 2;
const START_SHARE: f64 = 1.0 / 3.0;
/// Longer texts state more than one thing.
const STATEMENT_LETTERS: usize = 300;
/// Longer texts are not compared with the query.
const LONGEST_TEXT: usize = 1000;
/// A newer value takes the place of an older one if it is at least this share as similar to the query.
const AS_SIMILAR: f64 = 0.8;

impl BlockAnswer {
    /// Looks up the records of what was found, leaves out what has none any more, and puts the newest values first.
    pub fn look_up(&mut self, state: &State, ask: &Ask) {
        let further = std::mem::take(&mut self.further);
        let Some(query) = ask.newest_for() else {
            self.results
                .retain_mut(|block| block.look_up(state, &ask.viewer, |_| true));
            return;
        };
        let mut found: Vec<(FoundBlock, Vec<String>)> = Vec::new();
        let (mut places, asked) = (0, beginning(query));
        let results = self.results.drain(..).map(|block| (block, true));
        for (mut block, is_result) in results.chain(further.into_iter().map(|block| (block, false))) {
            let mut start = Vec::new();
            let is_wanted = |head: &Head<'_>| {
                start = beginning(&content_of(head));
                is_result || start == asked || found.iter().any(|other| other.1 == start)
            };
            if block.look_up(state, &ask.viewer, is_wanted) {
                found.push((block, start));
                places += usize::from(is_result);
            }
        }
        self.results = newest_first(found, places, query);
    }
}

impl FoundBlock {
    /// Looks its record up; whether it is there, wanted, and one that this face would have written.
    fn look_up(&mut self, state: &State, viewer: &Viewer, is_wanted: impl FnOnce(&Head<'_>) -> bool) -> bool {
        let id = block_key(&self.id);
        let Some(known) = state.dated(viewer, &id) else {
            return false;
        };
        let head = Head::of(known.record);
        let is_sound = head.status != b"tombstone" && is_wanted(&head) && head.misfit().is_none();
        if is_sound {
            self.record = Some((known.record.to_vec(), known.moments));
            self.own_scope = state.own_scope(viewer, &spelled(&id));
        }
        is_sound
    }
}

/// The first pieces of a text: statements with others do not have the same subject.
fn beginning(text: &str) -> Vec<String> {
    Pieces::of(text).take(SAME_START).collect()
}

/// The content of a block, from its record.
fn content_of(head: &Head<'_>) -> String {
    head.part("content").and_then(quoted).map(plain).unwrap_or_default()
}

/// What a found block states.
struct Statement {
    block: FoundBlock,
    start: Vec<String>,
    /// All of its pieces, if it is compared with others.
    pieces: Vec<String>,
    letters: usize,
    /// When it happened, was stated again, or was learned.
    time: Option<i64>,
    speaker: Option<Vec<u8>>,
}

impl Statement {
    fn of(block: FoundBlock, start: Vec<String>, is_compared: bool) -> Self {
        let mut statement = Self {
            block,
            start,
            pieces: Vec::new(),
            letters: 0,
            time: None,
            speaker: None,
        };
        if let Some((record, moments)) = statement.block.record.as_ref().filter(|_| is_compared) {
            let head = Head::of(record);
            let content = content_of(&head);
            statement.letters = content.chars().count();
            if statement.letters <= LONGEST_TEXT {
                statement.pieces = Pieces::of(&content).collect();
            }
            let stated = ["time", "restated_at", "created_at"]
                .iter()
                .find_map(|name| head.part(name));
            let stated = stated.and_then(quoted).and_then(|text| read_short(&plain(text)));
            statement.time = stated.or_else(|| moments.created.micros());
            statement.speaker = head.part("speaker").map(<[u8]>::to_vec);
        }
        statement
    }

    /// Whether this is a newer value of what another one states; not if the query names the old value.
    fn is_newer_than(&self, old: &Self, asked: &[String]) -> bool {
        if self.time.is_none() || old.time.is_none() || self.time <= old.time || self.speaker != old.speaker {
            return false;
        }
        let (was, now) = (&old.pieces, &self.pieces);
        if self.start != old.start || self.letters.max(old.letters) > STATEMENT_LETTERS || was == now || was == asked {
            return false;
        }
        let same = was.iter().zip(now).take_while(|(one, other)| one == other).count();
        let least = (START_SHARE * was.len().max(now.len()) as f64).max(SAME_START as f64);
        let names_old = |piece: &String| !now.contains(piece) && asked.contains(piece);
        same as f64 >= least && !was[same..].iter().any(names_old)
    }
}

/// Puts a newer value of a subject before the older ones, and blocks that state just the query before all others that are
/// not guaranteed. Both may be among those behind the first `places`, which are the results. Each block is given with the
/// [`beginning`] of its content.
fn newest_first(found: Vec<(FoundBlock, Vec<String>)>, places: usize, query: &str) -> Vec<FoundBlock> {
    let start = beginning(query);
    let begins_like_another = |at: usize| {
        let mut others = found[..at].iter().chain(&found[at + 1..]);
        found[at].1 == start || others.any(|other| other.1 == found[at].1)
    };
    let compared: Vec<bool> = (0..found.len()).map(begins_like_another).collect();
    if !compared.contains(&true) {
        return found.into_iter().map(|one| one.0).collect();
    }
    let asked: Vec<String> = Pieces::of(query).collect();
    let each = found.into_iter().zip(compared);
    let mut blocks: Vec<Statement> = each
        .map(|((block, start), is_compared)| Statement::of(block, start, is_compared))
        .collect();
    for at in 0..places {
        let newest = newest_of(&blocks, at, &asked);
        blocks[at..=newest].rotate_right(1);
    }
    if query.chars().count() <= LONGEST_TEXT {
        let first = blocks.iter().position(|one| !one.block.guaranteed).unwrap_or(0);
        let states_query = |one: &Statement| one.start == start && one.letters <= LONGEST_TEXT && one.pieces == asked;
        blocks[first..].sort_by_key(|one| !states_query(one));
    }
    blocks.truncate(places);
    for at in 0..blocks.len() {
        let mut behind = blocks[at + 1..].iter();
        let old = behind.find(|old| blocks[at].is_newer_than(old, &asked));
        blocks[at].block.newer_than = old.map(|old| old.block.id.clone());
    }
    blocks.into_iter().map(|one| one.block).collect()
}

/// The place of the newest value of the subject of a block, which may be its own.
fn newest_of(blocks: &[Statement], at: usize, asked: &[String]) -> usize {
    let old = &blocks[at];
    let mut newest = at;
    for (place, other) in blocks.iter().enumerate().skip(at + 1) {
        let is_similar = other.block.components[0] >= AS_SIMILAR * old.block.components[0];
        let (latest, time) = (blocks[newest].time, other.time);
        let is_later = latest.is_none() || time.is_none() || time > latest;
        if other.block.guaranteed == old.block.guaranteed && is_similar && is_later && other.is_newer_than(old, asked) {
            newest = place;
        }
    }
    newest
}
