//! Reduces a question to the words that it asks for.

use std::collections::HashSet;

use super::words::WordSplitter;

/// Frequent English words. Questions leave them out; records keep them for a question of nothing else.
const COMMON_WORDS: [&str; 122] = [
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being", "but", "by",
    "can", "could", "d", "did", "do", "does", "doing", "done", "each", "for", "from", "had", "has", "have", "having",
    "he", "her", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "ll", "m", "may", "me",
    "might", "my", "no", "not", "of", "on", "or", "other", "our", "out", "re", "s", "she", "should", "so", "some",
    "such", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to", "too", "up",
    "us", "ve", "very", "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would",
    "you", "your", "being", "between", "both", "don", "down", "during", "few", "here", "hers", "let", "more", "most",
    "nor", "off", "once", "only", "over", "own", "same", "those", "through", "under", "until", "whom", "whose",
    "yours",
];

/// The stems that a question asks for, each once, in the order of the question.
pub fn asked(text: &str) -> Vec<String> {
    let mut words = WordSplitter::default();
    let mut found = Vec::new();
    words.each(text, |word| found.push(word.to_owned()));
    if found.iter().any(|word| !is_common(word)) {
        found.retain(|word| !is_common(word));
    }
    let (mut stems, mut known) = (Vec::new(), HashSet::new());
    for word in &found {
        let stem = words.stem(word).into_owned();
        if known.insert(stem.clone()) {
            stems.push(stem);
        }
    }
    stems
}

/// Stems of English words that ask or tell without saying about what.
const ASKING_STEMS: [&str; 36] = [
    "anyth", "ask", "describ", "els", "everyth", "exact", "explain", "find", "give", "hear", "inform", "kind", "know",
    "long", "look", "mani", "mean", "much", "need", "often", "pleas", "question", "realli", "recal", "remember",
    "remind", "said", "say", "show", "someth", "sort", "talk", "tell", "thing", "type", "want",
];

/// Whether a stem asks or tells without saying about what.
pub fn is_of_asking(stem: &str) -> bool {
    ASKING_STEMS.contains(&stem)
}

/// Whether a text has one of these stems.
pub fn says_any(text: &str, stems: &[String]) -> bool {
    let (mut words, mut found) = (WordSplitter::default(), Vec::new());
    words.each(text, |word| found.push(word.to_owned()));
    found.iter().any(|word| {
        let stem = words.stem(word);
        stems.iter().any(|asked| **asked == *stem)
    })
}

/// What stands beside the one name that a question has a word of; `None` where it names several, or none.
pub fn one_named<'a, T>(names: impl Iterator<Item = (&'a str, T)>, asked: &[String]) -> Option<T> {
    let mut named = names.filter(|(name, _)| says_any(name, asked));
    named.next().filter(|_| named.next().is_none()).map(|(_, one)| one)
}

fn is_common(word: &str) -> bool {
    COMMON_WORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::{asked, one_named, says_any};

    #[test]
    fn who_is_named_among_others_is_nobody() {
        let meant = |text: &str| one_named([("Ann Lee", 1), ("Bob", 2), ("The host", 3)].into_iter(), &asked(text));
        assert_eq!(
            (meant("what did Ann say?"), meant("Bob's tea, Bob")),
            (Some(1), Some(2))
        );
        assert_eq!((meant("Ann or Bob"), meant("the tea"), meant("")), (None, None, None));
    }

    #[test]
    fn a_text_says_a_stem_in_any_of_its_forms() {
        assert!(says_any("They RUN, and the", &asked("running")));
        assert!(says_any("they ran, and the", &asked("the")));
        assert!(!says_any("they ran", &asked("running")));
    }
}
