//! Cuts a text into words.
//!
//! Characters are folded, runs of letters and digits are words, and English endings are cut (Snowball). Scripts that put no
//! spaces between words, and emoji, become single characters and pairs of neighbours. The same rules hold for records and
//! for questions; only a question may leave out words that say little.

use frostem::{Algorithm, Stemmer};
use unicode_normalization::char::is_combining_mark;

use super::fold::{fold, is_picture};

/// Longer words are cut: nobody types them, and a blob of letters should not fill the index.
const LONGEST_WORD_BYTES: usize = 64;

/// Splits, folds and stems; keeps its memory between texts.
pub struct WordSplitter {
    stemmer: Stemmer,
    folded: String,
}

impl Default for WordSplitter {
    fn default() -> Self {
        Self {
            stemmer: Stemmer::new(Algorithm::English),
            folded: String::new(),
        }
    }
}

impl WordSplitter {
    /// Shows each folded word of a text, its ending still on.
    pub fn each(&mut self, text: &str, mut see: impl FnMut(&str)) {
        self.folded.clear();
        if text.is_ascii() {
            self.folded.push_str(text);
            self.folded.make_ascii_lowercase();
            let words = self.folded.split(|c: char| !c.is_ascii_alphanumeric());
            words.filter(|word| !word.is_empty()).for_each(|word| see(cut(word)));
            return;
        }
        fold(text, &mut self.folded);
        let is_part = |c: char| c.is_alphanumeric() || is_combining_mark(c) || is_picture(c);
        for run in self.folded.split(|c| !is_part(c)).filter(|run| !run.is_empty()) {
            split_scripts(run, &mut see);
        }
    }

    /// A word without its English ending.
    pub fn stem<'a>(&self, word: &'a str) -> std::borrow::Cow<'a, str> {
        if word.len() > 2 && word.bytes().all(|b| b.is_ascii_lowercase()) {
            self.stemmer.stem(word)
        } else {
            word.into()
        }
    }
}

fn cut(word: &str) -> &str {
    let fits = |&end: &usize| word.is_char_boundary(end);
    let end = (0..=word.len().min(LONGEST_WORD_BYTES)).rev().find(fits).unwrap_or(0);
    &word[..end]
}

/// Whether a character belongs to a script that is written without spaces, or in syllables that carry endings.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{302e}'..='\u{302f}' | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}' | '\u{a9e0}'..='\u{a9ff}' | '\u{aa60}'..='\u{aa7f}'
        | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{1aff0}'..='\u{1b16f}' | '\u{20000}'..='\u{3ffff}')
}

/// Shows the words of a run without separators: pieces of spaced scripts whole, of others each character and each pair.
fn split_scripts(run: &str, see: &mut impl FnMut(&str)) {
    let mut word_start = None;
    let mut before: Option<usize> = None;
    for (at, c) in run.char_indices() {
        let end = at + c.len_utf8();
        if is_unspaced(c) || is_picture(c) {
            if let Some(start) = word_start.take() {
                see(cut(&run[start..at]));
            }
            see(&run[at..end]);
            if let Some(start) = before {
                see(&run[start..end]);
            }
            before = Some(at);
        } else {
            before = None;
            word_start.get_or_insert(at);
        }
    }
    if let Some(start) = word_start {
        see(cut(&run[start..]));
    }
}
