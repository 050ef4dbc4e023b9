//! Scores blocks by the words of a query.

use super::columns::BlockColumns;
use super::filter::BlockFilter;
use crate::text::TextQuestion;

/// The words of a query, if there are any. Scores have single precision, as cosines have.
pub struct Wording<'a> {
    columns: &'a BlockColumns,
    question: Option<&'a TextQuestion<'a>>,
}

impl<'a> Wording<'a> {
    /// `question` must be of the state that the columns follow.
    pub fn new(columns: &'a BlockColumns, question: Option<&'a TextQuestion<'a>>) -> Self {
        Self { columns, question }
    }

    /// The best matches among the rows that pass, the best first; ties by id.
    pub fn best(&self, number: usize, filter: &BlockFilter<'_>) -> Vec<(u32, f64)> {
        let columns = self.columns;
        let found = self.question.map(|question| {
            question.best_where(
                number,
                |slot| columns.row_in(slot),
                |&row| filter.passes(row),
                |&one, &other| columns.by_id(one, other),
            )
        });
        let found = found.unwrap_or_default().into_iter();
        found.map(|(row, score)| (row, f64::from(score))).collect()
    }

    fn document(&self, row: u32) -> Option<(&'a TextQuestion<'a>, u32)> {
        let question = self.question?;
        Some((question, question.doc_of(self.columns.slot_of(row)?)?))
    }

    /// The text score of a block.
    pub fn of(&self, row: u32) -> f64 {
        let score = self.document(row).map_or(0.0, |(question, doc)| question.score(doc));
        f64::from(score as f32)
    }

    /// The weighted share of the query's words that a block contains.
    pub fn coverage(&self, row: u32) -> f64 {
        self.document(row).map_or(0.0, |(question, doc)| question.coverage(doc))
    }

    /// The weights of the words.
    pub fn weights(&self) -> Vec<f64> {
        self.question.map_or_else(Vec::new, TextQuestion::weights)
    }

    /// The places of the query's words that a block contains.
    pub fn words_of(&self, row: u32) -> Vec<usize> {
        self.document(row)
            .map_or_else(Vec::new, |(question, doc)| question.words_of(doc))
    }
}
