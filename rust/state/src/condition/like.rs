//! Matches a text with a pattern of SQL's LIKE, in time that grows with the text.
//!
//! The part between two `%` is looked for once, from left to right: its first place leaves most for what follows.

use std::collections::HashMap;

use memchr::memmem;

/// The bits of one word of a set of places.
const WORD_BITS: usize = 64;

/// A pattern, made ready: `%` stands for any text, `_` for one character, `\` takes the next one as it is. Case counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// What stands between the `%`. INVARIANT: there is one more of them than of `%`.
    pieces: Vec<Fragment>,
}

/// A part of a pattern without `%`; `None` stands for any one character.
#[derive(Clone, Debug, PartialEq)]
struct Fragment {
    chars: Vec<Option<char>>,
    /// The same as text, unless there is a `_` in it.
    literal: Option<String>,
}

impl Pattern {
    /// Makes a pattern ready; `None` if it ends in the middle of an escape.
    pub fn new(text: &str) -> Option<Self> {
        let mut pieces = vec![Vec::new()];
        let mut chars = text.chars();
        while let Some(next) = chars.next() {
            let piece = match next {
                '%' => {
                    pieces.push(Vec::new());
                    continue;
                }
                '_' => None,
                '\\' => Some(chars.next()?),
                plain => Some(plain),
            };
            pieces.last_mut()?.push(piece);
        }
        Some(Self {
            pieces: pieces.into_iter().map(Fragment::new).collect(),
        })
    }

    /// Whether a text fits.
    pub fn fits(&self, text: &str) -> bool {
        let [first, rest @ ..] = &self.pieces[..] else {
            return false;
        };
        let Some(mut text) = first.after_start(text) else {
            return false;
        };
        let [middle @ .., last] = rest else {
            return text.is_empty();
        };
        for piece in middle {
            match piece.after_first(text) {
                Some(left) => text = left,
                None => return false,
            }
        }
        last.ends(text)
    }
}

impl Fragment {
    fn new(chars: Vec<Option<char>>) -> Self {
        Self {
            literal: chars.iter().copied().collect(),
            chars,
        }
    }

    /// What is left of a text that begins with this.
    fn after_start<'a>(&self, text: &'a str) -> Option<&'a str> {
        let mut rest = text.chars();
        let fits = self.chars.iter().all(|wanted| {
            let next = rest.next();
            next.is_some() && wanted.is_none_or(|wanted| next == Some(wanted))
        });
        fits.then_some(rest.as_str())
    }

    /// Whether a text ends with this.
    fn ends(&self, text: &str) -> bool {
        let mut rest = text.chars().rev();
        self.chars.iter().rev().all(|wanted| {
            let next = rest.next();
            next.is_some() && wanted.is_none_or(|wanted| next == Some(wanted))
        })
    }

    /// What is left of a text behind the first place where this stands in it.
    fn after_first<'a>(&self, text: &'a str) -> Option<&'a str> {
        match &self.literal {
            Some(literal) => {
                let start = memmem::find(text.as_bytes(), literal.as_bytes())?;
                text.get(start + literal.len()..)
            }
            None => self.after_first_by_bits(text),
        }
    }

    /// The same with places of which any character will do. All places where it may have begun are followed at once, a bit
    /// for each: bit `n` says that its first `n + 1` characters stand right before here.
    fn after_first_by_bits<'a>(&self, text: &'a str) -> Option<&'a str> {
        let words = self.chars.len().div_ceil(WORD_BITS);
        let mut any = vec![0_u64; words];
        for (at, _) in self.chars.iter().enumerate().filter(|(_, wanted)| wanted.is_none()) {
            any[at / WORD_BITS] |= 1 << (at % WORD_BITS);
        }
        let mut allowed: HashMap<char, Vec<u64>> = HashMap::new();
        for (at, wanted) in self.chars.iter().enumerate() {
            if let Some(wanted) = wanted {
                let places = allowed.entry(*wanted).or_insert_with(|| any.clone());
                places[at / WORD_BITS] |= 1 << (at % WORD_BITS);
            }
        }
        let last = self.chars.len() - 1;
        let mut begun = vec![0_u64; words];
        for (at, next) in text.char_indices() {
            let places = allowed.get(&next).unwrap_or(&any);
            let mut carried = 1;
            for (word, places) in begun.iter_mut().zip(places) {
                let beyond = *word >> (WORD_BITS - 1);
                *word = (*word << 1 | carried) & places;
                carried = beyond;
            }
            if begun[last / WORD_BITS] >> (last % WORD_BITS) & 1 == 1 {
                return text.get(at + next.len_utf8()..);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).expect("a pattern").fits(text)
    }

    #[test]
    fn an_escape_takes_the_next_character_as_it_is() {
        assert!(like("100\\%", "100%") && like("a\\_b", "a_b") && like("a\\\\b", "a\\b") && like("\\a", "a"));
        assert!(!like("100\\%", "1000") && !like("a\\_b", "axb"));
        assert_eq!(Pattern::new("a\\"), None);
    }

    #[test]
    fn patterns_fit_as_trying_everything_says() {
        fn tried(pattern: &[char], text: &[char]) -> bool {
            match pattern {
                [] => text.is_empty(),
                ['%', rest @ ..] => (0..=text.len()).any(|skip| tried(rest, &text[skip..])),
                [wanted, rest @ ..] => {
                    text.first().is_some_and(|next| *wanted == '_' || wanted == next) && tried(rest, &text[1..])
                }
            }
        }
        let spell = |mut number: usize, letters: &[char]| {
            let mut word = Vec::new();
            while number > 0 {
                word.push(letters[number % letters.len()]);
                number /= letters.len();
            }
            word
        };
        for pattern in (0..4096).map(|number| spell(number, &['a', '%', '_', 'é'])) {
            let ready = Pattern::new(&pattern.iter().collect::<String>()).expect("a pattern");
            for text in (0..81).map(|number| spell(number, &['b', 'a', 'é'])) {
                let is_fit = ready.fits(&text.iter().collect::<String>());
                assert_eq!(is_fit, tried(&pattern, &text), "{pattern:?} {text:?}");
            }
        }
    }

    #[test]
    fn long_texts_take_no_time() {
        let text = "a".repeat(1 << 20);
        assert!(!like(&format!("%{}b%", "a".repeat(2_000)), &text));
        assert!(!like(&format!("%{}_b%", "a".repeat(100)), &text));
        assert!(like(&format!("%{}_a%", "a".repeat(100)), &text));
    }
}
