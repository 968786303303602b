//! A line of a person's as words: blanks separate, quotes keep blanks together.
//!
//! A backslash and the character after it stay in the word as they are, inside quotes too: what an
//! escape means is decided by the notation of keys and values, and a quoted quote is written `\"`.

/// The words of `line`, or what is wrong with it.
pub(crate) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', _) => {
                let word = word.get_or_insert_default();
                word.push('\\');
                word.extend(characters.next());
            }
            (_, Some(open)) if character == open => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(character),
            ('"' | '\'', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (' ' | '\t', None) => words.extend(word.take()),
            (_, None) => word.get_or_insert_default().push(character),
        }
    }
    if let Some(open) = quote {
        return Err(format!("a quote {open} is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together_and_escapes_stay() {
        let words = |line| split(line).expect("words");
        assert_eq!(words("  put a\t b  "), ["put", "a", "b"]);
        assert_eq!(words(r#"put "a b" '' c"d e""#), ["put", "a b", "", "cd e"]);
        assert_eq!(words(r#"put "say \"hi\"" \x00\ a"#), ["put", r#"say \"hi\""#, r"\x00\ a"]);
        assert!(words("   ").is_empty());
        assert!(split("get 'a").is_err());
    }
}
