//! Finds the batch to which a lost event belonged.
//!
//! The line that opens a batch says how many follow. If it is lost too, the moment tells: the events of a batch share it, to
//! the microsecond.

use std::io;
use std::ops::Range;

use chronolog::disk::DiskFile;
use chronolog::event::Op;

use super::runs::each_event;

/// Where something is lost.
pub(in crate::store) struct LossPlace {
    /// Which loss it is.
    pub number: usize,
    /// Behind the line before it, and not behind the line that follows.
    pub offset: u64,
    /// The line that opened a batch may be among what is lost.
    pub may_be_several: bool,
}

/// A part of a log that was written as one, with losses in it.
#[derive(Debug, Default)]
pub(in crate::store) struct LossyStretch {
    /// Its lines.
    pub bytes: Range<u64>,
    /// The losses.
    pub lost: Vec<usize>,
}

/// The batches of a log that something is lost of.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn stretches(
    file: &dyn DiskFile,
    end: u64,
    mut places: Vec<LossPlace>,
) -> io::Result<Vec<LossyStretch>> {
    places.sort_by_key(|place| place.offset);
    let mut search = StretchSearch::default();
    let mut places = places.into_iter().peekable();
    if places.peek().is_some() {
        each_event(file, 0..end, |offset, _, text, event| {
            let line = GoodLine {
                bytes: offset..offset + text.len() as u64 + 1,
                // Other tools write no batches, and their moments may be coarse.
                moment: Some(event.ts(text)).filter(|_| event.is_our_spelling(text)),
                batch: (event.op == Op::Begin).then_some(event.events),
                seq: event.spans.seq,
            };
            while let Some(place) = places.next_if(|place| place.offset <= offset) {
                search.lose(&place, Some(&line));
            }
            search.pass(&line);
        })?;
    }
    for place in places {
        search.lose(&place, None);
    }
    search.end_batch();
    search.end_moment();
    Ok(search.found)
}

/// A good line.
struct GoodLine<'a> {
    bytes: Range<u64>,
    moment: Option<&'a [u8]>,
    /// How many events follow it as a batch.
    batch: Option<u32>,
    seq: u64,
}

#[derive(Default)]
struct OpenBatch {
    stretch: LossyStretch,
    /// The seqs of the events that are still to come.
    open: Range<u64>,
}

/// Lines with one moment.
#[derive(Default)]
struct MomentLines {
    stretch: LossyStretch,
    text: Vec<u8>,
    lines: u64,
    has_begin: bool,
}

#[derive(Default)]
struct StretchSearch {
    batch: Option<OpenBatch>,
    moment: Option<MomentLines>,
    /// What was lost before the first line of the moment that comes.
    coming: Vec<usize>,
    found: Vec<LossyStretch>,
}

impl StretchSearch {
    /// Something is lost before this line.
    fn lose(&mut self, place: &LossPlace, next: Option<&GoodLine<'_>>) {
        if let Some(batch) = self.batch.as_mut().filter(|batch| !batch.open.is_empty()) {
            batch.stretch.lost.push(place.number);
            return;
        }
        let next = next.filter(|line| line.batch.is_none()).and_then(|line| line.moment);
        // Two lines of one moment whose begin is lost are a batch as well.
        let goes_on = |moment: &&mut MomentLines| {
            next == Some(&moment.text) || !moment.has_begin && moment.lines > 1 && !moment.text.is_empty()
        };
        match self.moment.as_mut().filter(goes_on) {
            Some(moment) => moment.stretch.lost.push(place.number),
            None if place.may_be_several && next.is_some() => self.coming.push(place.number),
            None => {}
        }
    }

    fn pass(&mut self, line: &GoodLine<'_>) {
        let is_inside = |batch: &OpenBatch| line.batch.is_none() && batch.open.contains(&line.seq);
        match self.batch.as_mut().filter(|batch| is_inside(batch)) {
            Some(batch) => {
                batch.open.start = line.seq + 1;
                batch.stretch.bytes.end = line.bytes.end;
            }
            None => self.end_batch(),
        }
        if let Some(events) = line.batch {
            self.batch = Some(OpenBatch {
                stretch: LossyStretch {
                    bytes: line.bytes.clone(),
                    lost: Vec::new(),
                },
                open: line.seq + 1..line.seq + 1 + u64::from(events),
            });
        }
        let text = line.moment.unwrap_or_default();
        if self
            .moment
            .as_ref()
            .is_none_or(|moment| moment.text != text || text.is_empty())
        {
            self.end_moment();
            self.moment = Some(MomentLines {
                stretch: LossyStretch {
                    bytes: line.bytes.clone(),
                    lost: std::mem::take(&mut self.coming),
                },
                text: text.to_vec(),
                ..MomentLines::default()
            });
        }
        if let Some(moment) = &mut self.moment {
            moment.stretch.bytes.end = line.bytes.end;
            moment.lines += 1;
            moment.has_begin |= line.batch.is_some();
        }
    }

    fn end_batch(&mut self) {
        let batch = self.batch.take().map(|batch| batch.stretch);
        self.found.extend(batch.filter(|stretch| !stretch.lost.is_empty()));
    }

    fn end_moment(&mut self) {
        let moment = self.moment.take().map(|moment| moment.stretch);
        self.found.extend(moment.filter(|stretch| !stretch.lost.is_empty()));
    }
}
