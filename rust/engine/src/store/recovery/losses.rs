//! Counts the events that are lost in a gap, and says what can still be told of them.
//!
//! A line that cannot be read stands for one event at least. Where the lines on both sides are ours, their seqs tell how many
//! there were: more than there are lines, if a newline was lost with them.

use super::bad_line::BadLine;
use super::gaps::Gap;
use super::seeming;

/// How many ids are told of one line.
pub(in crate::store) const MOST_TOLD: usize = 20;

/// An event that could not be brought back, or several of which nothing is left to tell them apart.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Lost {
    /// Where it stood.
    pub offset: u64,
    /// Where that is once the other gaps are filled.
    pub healed_offset: u64,
    /// Its physical line; 0 if the line is gone.
    pub line: u64,
    /// Its seq, if that can be read, or follows from its neighbours.
    pub seq: Option<u64>,
    /// The records that it spoke of, as far as they can be read. Nothing proves them.
    pub ids: Vec<String>,
    /// How many events it stands for whose records cannot be read for certain.
    pub unread: u64,
    /// It stands for what was lost together with newlines: more events than lines are left of.
    pub is_joined: bool,
    /// It is not the only event that is lost there, or nothing tells that it is.
    pub may_be_several: bool,
    /// What is left of it, if that is to be searched for the names of records.
    pub remains: Vec<u8>,
    /// What is left of a patch that names a record, as it seems for certain, but once.
    pub patch: Vec<u8>,
    /// The rows that it took back, as far as they can be read.
    pub gone_rows: Vec<u32>,
    /// It said which embeddings there are.
    pub is_of_embeddings: bool,
    /// How many events followed it as a batch, if it opened one and that can be read.
    pub batch: Option<u32>,
    /// What became doubtful with it, for people.
    pub doubt: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// A later line links to it, or to what came before it and is lost too.
    pub is_linked: bool,
}

impl Lost {
    fn of_line(line: &BadLine, is_linked: bool) -> Self {
        // A line that stands here once more was not lost.
        let text = Some(line).filter(|line| line.is_lost()).map(|line| &line.text[..]);
        let text = text.unwrap_or_default();
        let is_of_embeddings = seeming::is_of_embeddings(text);
        // Who put a line of his own here may have named any record.
        let is_act = !seeming::prefixes(text).is_empty();
        let is_certain = !line.is_lost() || is_of_embeddings || !line.is_whole && seeming::is_certain(text);
        Self {
            offset: line.offset,
            healed_offset: line.offset,
            line: line.number,
            seq: line.seq,
            ids: seeming::ids(text),
            unread: u64::from(!is_certain),
            is_joined: false,
            may_be_several: false,
            remains: if line.is_whole || is_certain && !is_act {
                &[]
            } else {
                text
            }
            .to_vec(),
            patch: match is_certain && line.is_lost() && !is_of_embeddings && seeming::is_patch(text) {
                true => text.to_vec(),
                false => Vec::new(),
            },
            gone_rows: seeming::gone_rows(text),
            is_of_embeddings,
            batch: seeming::batch(text),
            doubt: seeming::hides_rows(text).then(|| {
                "it is not known whose embeddings it spoke of, and any in its space may be older ones".to_owned()
            }),
            reason: line.reason.clone(),
            is_linked,
        }
    }

    /// For people.
    pub fn tell(&self) -> String {
        let mut said = format!("byte {}", self.offset);
        if self.line > 0 {
            said += &format!(" (line {})", self.line);
        }
        if let Some(seq) = self.seq {
            said += &format!(", event {seq}");
        }
        if let Some(events) = self.batch {
            said += &format!(", it seems the begin of a batch of {events}");
        }
        let ids: Vec<String> = self.ids.iter().take(MOST_TOLD).map(|id| format!("{id:?}")).collect();
        if !ids.is_empty() {
            said += &format!(", it seems of {}", ids.join(", "));
        }
        if self.ids.len() > MOST_TOLD {
            said += &format!(" and {} more", self.ids.len() - MOST_TOLD);
        }
        let doubt = self.doubt.iter().map(|doubt| format!("; {doubt}"));
        format!("{said}: {}{}", self.reason, doubt.collect::<String>())
    }
}

/// Whether what is left of a line is searched for the names of records.
fn is_searched(line: &BadLine) -> bool {
    line.is_lost() && !line.is_whole && !seeming::is_of_embeddings(&line.text)
}

impl Gap {
    /// The events that are lost here, each with the place that it has in the log as it stands.
    pub fn lost(&self) -> Vec<Lost> {
        let is_linked = self.hole.is_some_and(|hole| hole.after.is_some()) && !self.goes_on_before();
        let mut found: Vec<Lost> = self.bad.iter().map(|line| Lost::of_line(line, is_linked)).collect();
        let lines = self.bad.iter().filter(|line| line.is_lost()).count() as u64;
        let (first, events) = match self.seqs {
            Some((before, after)) => (Some(before + 1), after.saturating_sub(before + 1)),
            None => (None, 0),
        };
        let may_be_several = lines.max(events) > 1 || self.seqs.is_none() && !self.goes_on_before();
        let is_uncounted = self.seqs.is_none() && !self.goes_on_before();
        for (lost, line) in found.iter_mut().zip(&self.bad) {
            lost.may_be_several = may_be_several;
            // Whatever is left speaks of one of them at best, be it of an embedding.
            let hides_others = is_uncounted && self.start == 0 && line.is_lost() && !line.is_whole;
            if hides_others {
                lost.reason += "; it is not known how many events are lost here";
                lost.unread = lost.unread.max(u64::from(!is_searched(line)));
            }
            if hides_others || is_uncounted && is_searched(line) {
                // It may be what is left of two lines, and name but one of them for certain.
                lost.remains = line.text.clone();
            }
        }
        if lines == events && !self.bad.iter().any(|line| line.is_whole) {
            for (lost, seq) in found.iter_mut().zip(first.unwrap_or(0)..) {
                lost.seq = lost.seq.or(Some(seq));
            }
        }
        if lines < events.max(1) {
            let told = self.bad.iter().filter(|line| line.is_lost());
            let named: usize = told.map(|line| seeming::named(&line.text)).sum();
            found.push(self.lost_with_newlines(first, events, named as u64, is_linked));
        }
        found
    }

    /// What to say where more events are lost than there are lines left of them.
    fn lost_with_newlines(&self, first: Option<u64>, events: u64, named: u64, is_linked: bool) -> Lost {
        let is_all_gone = self.bad.is_empty();
        let unread = events.max(1).saturating_sub(named);
        let which = first.filter(|_| events > 0).map(|first| match events {
            1 => format!("event {first} is lost here"),
            _ => format!("events {first} to {} are lost here", first + events - 1),
        });
        let taken = "lines were taken out, or others put in their place";
        let reason = match (which, is_all_gone) {
            (None, _) => taken.to_owned(),
            (Some(which), true) => format!("{which}: {taken}"),
            (Some(which), false) if unread == 0 => which,
            (Some(which), false) => format!("{which}; of {unread} of them nothing can be read"),
        };
        // What names one event for certain may be what is left of two. Those that speak of embeddings name records that
        // they do not touch.
        let (searched, others): (Vec<&BadLine>, Vec<&BadLine>) = self.bad.iter().partition(|line| is_searched(line));
        let of_embeddings = others.iter().filter(|line| line.is_lost() && !line.is_whole);
        Lost {
            offset: self.bad.first().map_or(self.start, |line| line.offset),
            ids: of_embeddings.flat_map(|line| seeming::beliefs(&line.text)).collect(),
            remains: searched
                .iter()
                .flat_map(|line| [&line.text[..], b"\n"])
                .collect::<Vec<_>>()
                .concat(),
            is_joined: true,
            unread,
            may_be_several: events != 1,
            reason,
            is_linked: is_linked || is_all_gone,
            ..Lost::default()
        }
    }
}
