//! Splits a text into the pieces that distinguish statements: words, numbers, quotations and signs.

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// A longer quotation is not one piece.
const QUOTED_LETTERS: usize = 200;
const SPELLED_OUT: [(&str, &str, &str); 4] = [
    ("can't", "can", "not"),
    ("cannot", "can", "not"),
    ("won't", "will", "not"),
    ("shan't", "shall", "not"),
];
const ENDINGS: [(&str, &str); 5] = [
    ("n't", "not"),
    ("'m", "am"),
    ("'re", "are"),
    ("'ve", "have"),
    ("'ll", "will"),
];

/// The pieces of a text, without "the" and a final full stop or exclamation mark.
pub struct Pieces<'a> {
    rest: &'a str,
    /// The character before the rest.
    before: Option<char>,
    /// The second part of a contraction.
    second: Option<String>,
}

impl<'a> Pieces<'a> {
    /// The pieces of a text.
    pub fn of(text: &'a str) -> Self {
        Self {
            rest: text.trim_matches(is_space).trim_end_matches(['.', '!', '…']),
            before: None,
            second: None,
        }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (piece, rest) = self.rest.split_at(bytes);
        self.before = piece.chars().next_back().or(self.before);
        self.rest = rest;
        piece
    }
}

impl Iterator for Pieces<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            if let Some(second) = self.second.take() {
                return Some(second);
            }
            self.take(self.rest.len() - self.rest.trim_start_matches(is_space).len());
            let first = self.rest.chars().next()?;
            if let Some(length) = quotation(self.rest, self.before) {
                let piece = self.take(length);
                let mut inner = piece.chars();
                inner.next();
                inner.next_back();
                return Some(format!("'{}'", inner.as_str()));
            }
            if let Some(length) = number(self.rest) {
                return Some(self.take(length).to_owned());
            }
            if !is_word(first) {
                return Some(self.take(first.len_utf8()).to_owned());
            }
            let word = self.take(word(self.rest)).to_lowercase();
            if word != "the" {
                return Some(self.spelled_out(word.replace('’', "'")));
            }
        }
    }
}

impl Pieces<'_> {
    /// The first part of a contraction, whose second part comes next, or the word itself.
    fn spelled_out(&mut self, word: String) -> String {
        let whole = SPELLED_OUT.iter().find(|(short, ..)| *short == word);
        let first = whole.map(|(_, first, _)| *first);
        let ending = |&&(short, _): &&(&str, &str)| word.len() > short.len() && word.ends_with(short);
        let ending = ENDINGS.iter().find(ending).filter(|_| whole.is_none());
        let first = first.or_else(|| word.strip_suffix(ending?.0)).map(str::to_owned);
        self.second = whole.map(|one| one.2).or(ending.map(|one| one.1)).map(str::to_owned);
        first.unwrap_or(word)
    }
}

fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\x1c'..='\x1f').contains(&letter)
}

fn is_word(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_alphanumeric() || letter == '_';
    }
    matches!(
        letter.general_category_group(),
        GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number
    )
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit() || (!letter.is_ascii() && letter.general_category() == GeneralCategory::DecimalNumber)
}

/// The length of the quotation at the start of a text. An apostrophe in a word is no quotation mark.
fn quotation(text: &str, before: Option<char>) -> Option<usize> {
    let open = text.chars().next()?;
    let ends: &[char] = match open {
        '"' => &['"'],
        '“' => &['”'],
        '„' => &['“', '”'],
        '«' => &['»'],
        '‘' => &['’'],
        '\'' if !before.is_some_and(is_word) => &['\''],
        _ => return None,
    };
    let behind = &text[open.len_utf8()..];
    let (inner, rest) = behind.split_at(behind.find(ends)?);
    let close = rest.chars().next()?;
    let is_of_word = matches!(open, '‘' | '\'') && rest[close.len_utf8()..].starts_with(is_word);
    let letters = inner.chars().take(QUOTED_LETTERS + 1).count();
    let is_one = (1..=QUOTED_LETTERS).contains(&letters) && !is_of_word && !(open == '\'' && inner.contains('\n'));
    is_one.then(|| open.len_utf8() + inner.len() + close.len_utf8())
}

/// The length of the number at the start of a text, with its sign.
fn number(text: &str) -> Option<usize> {
    let digits = text.strip_prefix(['-', '+', '±']).unwrap_or(text);
    if !digits.starts_with(is_digit) {
        return None;
    }
    let inside = |letter: char| is_digit(letter) || ['.', ',', ':', '/'].contains(&letter);
    let run = digits.trim_start_matches(inside);
    let run = &digits[..digits.len() - run.len()];
    Some(text.len() - digits.len() + run.trim_end_matches(|letter| !is_digit(letter)).len())
}

/// The length of the word at the start of a text, with its apostrophes and hyphens.
fn word(text: &str) -> usize {
    let mut rest = text.trim_start_matches(is_word);
    while let Some(more) = rest
        .strip_prefix(['\'', '’', '-'])
        .filter(|more| more.starts_with(is_word))
    {
        rest = more.trim_start_matches(is_word);
    }
    text.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_split_into_pieces() {
        for (text, pieces) in [
            ("The doctor said: 'Take 5 mg'!", "doctor|said|:|'Take 5 mg'"),
            (
                "He can't; they’ll pay -1,5 €/l…",
                "he|can|not|;|they|will|pay|-1,5|€|/|l",
            ),
            (
                "Anna's well-being: „gut“ 5mg 12:30.",
                "anna's|well-being|:|'gut'|5|mg|12:30",
            ),
            (" THE a--b 'n' x'y' ‘z’s \"\" ", "a|-|-|b|'n'|x'y|'|‘|z's|\"|\""),
            ("one  'two' the", "one|'two'"),
        ] {
            assert_eq!(Pieces::of(text).collect::<Vec<_>>().join("|"), pieces);
        }
    }
}
