//! A check that every element of a page or a chart is closed, in order, and that every attribute is
//! quoted.

/// Elements of HTML that have no end.
const VOID: [&str; 4] = ["meta", "link", "br", "input"];

/// Panics with the name and the place of what is wrong.
pub(crate) fn assert_well_formed(name: &str, text: &str) {
    let mut open: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let here = || rest[start..].chars().take(80).collect::<String>();
        rest = &rest[start..];
        if rest.starts_with("<!DOCTYPE") {
            rest = &rest[1..];
            continue;
        }
        let end = end_of(rest).unwrap_or_else(|| panic!("{name}: a tag without end: {}", here()));
        let tag = &rest[1..end];
        rest = &rest[end + 1..];
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closed), "{name}: before {}", here());
            continue;
        }
        let element = tag.split([' ', '/', '\n']).next().unwrap_or_default().to_owned();
        assert!(
            element.chars().all(|c| c.is_ascii_alphanumeric()) && !element.is_empty(),
            "{name}: <{tag}>"
        );
        if tag.ends_with('/') || VOID.contains(&element.as_str()) {
            continue;
        }
        // The text inside is not markup.
        if element == "script" || element == "style" {
            let close = format!("</{element}>");
            let at = rest.find(&close).unwrap_or_else(|| panic!("{name}: <{element}> without end"));
            rest = &rest[at + close.len()..];
            continue;
        }
        open.push(element);
    }
    assert!(open.is_empty(), "{name}: left open: {open:?}");
}

/// Where the tag ends; a `>` inside quotes does not end it.
fn end_of(tag: &str) -> Option<usize> {
    let mut quoted = false;
    for (at, c) in tag.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '<' if at > 0 => return None,
            '>' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}
