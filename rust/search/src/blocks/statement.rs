//! Looks up the records of results, and puts a newer value of a subject before older ones.

use super::ask::{Ask, BlockAnswer, FoundBlock};
use super::fields::{block_key, plain, quoted};
use super::names::NumberedNames;
use super::pieces::Pieces;
use super::shape::Head;
use chronolog::event::stamp::read_short;
use chronolog::json::members;
use chronolog::scope::Viewer;

use chronomemory_state::state::{Dated, State, spelled};

/// Statements of one subject have at least this number of equal first pieces, and at least this share of the longer one.
const SAME_START: usize = 2;
const START_SHARE: f64 = 1.0 / 3.0;
/// Longer texts are not one statement.
const STATEMENT_LETTERS: usize = 300;
/// Longer texts are not compared with the query.
const LONGEST_TEXT: usize = 1000;
/// The least similarity of a newer value, relative to the older one that it replaces.
const AS_SIMILAR: f64 = 0.8;

impl BlockAnswer {
    /// Looks up the records of the results, removes results without a valid record, and puts newer values first.
    pub fn look_up(&mut self, state: &State, ask: &Ask) {
        let further = std::mem::take(&mut self.further);
        if let Some(query) = ask.newest_for() {
            let mut names = NumberedNames::default();
            let asked: Vec<u32> = Pieces::of(query).map(|piece| names.number(&piece)).collect();
            let (places, results) = (self.results.len(), std::mem::take(&mut self.results));
            let statement_of = |mut block: FoundBlock| {
                block
                    .look_up(state, &ask.viewer)
                    .then(|| Statement::of(block, &mut names))
            };
            let blocks = results.into_iter().chain(further).filter_map(statement_of).collect();
            let is_short = query.chars().count() <= LONGEST_TEXT;
            self.results = newest_first(blocks, places, &asked, is_short);
        }
        self.results
            .retain_mut(|block| block.record.is_some() || block.look_up(state, &ask.viewer));
        self.results.retain(FoundBlock::is_sound);
    }
}

impl FoundBlock {
    /// Looks up the record; returns whether the viewer sees one.
    fn look_up(&mut self, state: &State, viewer: &Viewer) -> bool {
        let id = spelled(&block_key(&self.id));
        let known = self.slot.filter(|&slot| state.slots.is_of(slot, &id));
        let slot = known.or_else(|| state.slots.of_spelled(&id));
        let Some(slot) = slot.filter(|&slot| state.is_seen(viewer, slot)) else {
            return false;
        };
        let Dated { record, moments } = state.dated_in(slot);
        self.record = Some((record.into_owned(), moments));
        self.own_scope = state.own_scope_in(viewer, slot);
        true
    }

    /// Whether the record has the form of this face.
    fn is_sound(&self) -> bool {
        self.record.as_ref().is_some_and(|(record, _)| {
            let head = Head::of(record);
            head.status != b"tombstone" && head.misfit().is_none()
        })
    }
}

/// The statement of a result.
struct Statement {
    block: FoundBlock,
    /// The numbers of the pieces of its content; only the first of a long one.
    pieces: Vec<u32>,
    letters: usize,
    /// The time that it states, was stated again, or was learned.
    time: Option<i64>,
    speaker: Option<Vec<u8>>,
}

impl Statement {
    fn of(block: FoundBlock, names: &mut NumberedNames) -> Self {
        let (record, moments) = block
            .record
            .as_ref()
            .map_or((&[][..], None), |(record, moments)| (record, Some(moments)));
        let (mut content, mut speaker, mut times) = (String::new(), None, [None; 3]);
        for (key, value) in members(Head::of(record).data) {
            match key {
                b"content" => content = quoted(value).map(plain).unwrap_or_default(),
                b"speaker" => speaker = Some(value.to_vec()),
                b"time" => times[0] = Some(value),
                b"restated_at" => times[1] = Some(value),
                b"created_at" => times[2] = Some(value),
                _ => {}
            }
        }
        let letters = content.chars().count();
        let most = if letters > LONGEST_TEXT { SAME_START } else { usize::MAX };
        let pieces = Pieces::of(&content)
            .take(most)
            .map(|piece| names.number(&piece))
            .collect();
        let stated = times.into_iter().flatten().next().and_then(quoted);
        let stated = stated.and_then(|text| read_short(&plain(text)));
        let time = stated.or_else(|| moments?.created.micros());
        Self {
            block,
            pieces,
            letters,
            time,
            speaker,
        }
    }

    /// The first pieces; statements of one subject have the same.
    fn start(&self) -> &[u32] {
        &self.pieces[..self.pieces.len().min(SAME_START)]
    }

    /// Whether this is a newer value of the same subject; false if the query names the old value.
    fn is_newer_than(&self, old: &Self, asked: &[u32]) -> bool {
        if self.time.is_none() || old.time.is_none() || self.time <= old.time || self.speaker != old.speaker {
            return false;
        }
        let (was, now) = (&old.pieces, &self.pieces);
        if self.start() != old.start()
            || self.letters.max(old.letters) > STATEMENT_LETTERS
            || was == now
            || was == asked
        {
            return false;
        }
        let same = was.iter().zip(now).take_while(|(one, other)| one == other).count();
        let least = (START_SHARE * was.len().max(now.len()) as f64).max(SAME_START as f64);
        let names_old = |piece: &u32| !now.contains(piece) && asked.contains(piece);
        same as f64 >= least && !was[same..].iter().any(names_old)
    }
}

/// Puts a newer value of a subject before older ones, and blocks whose content equals a short query before all others that are
/// not guaranteed. Both may come from the candidates after the first `places`.
fn newest_first(mut blocks: Vec<Statement>, places: usize, asked: &[u32], is_short: bool) -> Vec<FoundBlock> {
    let places = places.min(blocks.len());
    for at in 0..places {
        let newest = newest_of(&blocks, at, asked);
        blocks[at..=newest].rotate_right(1);
    }
    if is_short {
        let first = blocks.iter().position(|one| !one.block.guaranteed).unwrap_or(0);
        let states_query = |one: &Statement| one.letters <= LONGEST_TEXT && one.pieces == asked;
        blocks[first..].sort_by_key(|one| !states_query(one));
    }
    blocks.truncate(places);
    for at in 0..blocks.len() {
        let mut behind = blocks[at + 1..].iter();
        let old = behind.find(|old| blocks[at].is_newer_than(old, asked));
        blocks[at].block.newer_than = old.map(|old| old.block.id.clone());
    }
    blocks.into_iter().map(|one| one.block).collect()
}

/// The place of the newest value of a block's subject, possibly the block itself.
fn newest_of(blocks: &[Statement], at: usize, asked: &[u32]) -> usize {
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
