//! Matches a tag with a pattern as SQL's LIKE does.

/// Whether a text matches: `%` is any text, `_` one character, and ASCII letters match either case.
pub fn like(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut here) = (0, 0);
    // The place of the last `%`, and the end of the text that it covers so far.
    let mut open: Option<(usize, usize)> = None;
    while here < text.len() {
        match pattern.get(at) {
            Some('%') => {
                open = Some((at, here));
                at += 1;
            }
            Some(&wanted) if wanted == '_' || wanted.eq_ignore_ascii_case(&text[here]) => {
                at += 1;
                here += 1;
            }
            _ => match open {
                Some((percent, covered)) => {
                    open = Some((percent, covered + 1));
                    at = percent + 1;
                    here = covered + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&rest| rest == '%')
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn patterns_are_sql_like() {
        assert!(like("self/%", "SELF/goal"));
        assert!(like("%", ""));
        assert!(like("%a%b", "xxaayyb"));
        assert!(like("_é_", "aéb"));
        assert!(!like("É", "é"));
        assert!(!like("self/%", "myself/goal"));
        assert!(!like("a_", "a"));
        assert!(!like("", "a"));
    }
}
