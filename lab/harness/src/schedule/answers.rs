//! Whether engines that read the same found the same: each round has a seed, so that what is in a
//! complete database and what is asked of it is the same for all. The self-test looks at small
//! databases; this looks at those that are timed.

/// The number of keys or entries that an engine found in a cell.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The engine's id.
    pub(super) engine: String,
    /// The section's place.
    pub(super) section: usize,
    /// The cell's place in it.
    pub(super) cell: usize,
    /// How the database was made and what was asked: only equal questions can be compared.
    pub(super) question: String,
    /// Keys found, or entries that a scan met.
    pub(super) found: u64,
}

/// The counts that differ from the most frequent one, each with the reason to drop it. Where none
/// is the most frequent, all of them are dropped.
pub(super) fn odd_ones(answers: &[Answer]) -> Vec<(&Answer, String)> {
    answers.iter().filter_map(|answer| Some((answer, oddity(answer, answers)?))).collect()
}

fn oddity(answer: &Answer, answers: &[Answer]) -> Option<String> {
    let same = |other: &&Answer| {
        (other.section, other.cell, &other.question)
            == (answer.section, answer.cell, &answer.question)
    };
    let comparable = || answers.iter().filter(same);
    let support = |found: u64| comparable().filter(|other| other.found == found).count();
    let own = support(answer.found);
    let other = comparable()
        .filter(|other| other.found != answer.found)
        .max_by_key(|other| support(other.found))?;
    let theirs = support(other.found);
    if own > theirs {
        return None;
    }
    let whose = if own == theirs { "; none is the most frequent" } else { "" };
    let (found, expected) = (answer.found, other.found);
    Some(format!(
        "found {found} of what {} found {expected}, in a database written alike{whose}",
        other.engine
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odd(answers: &[(&str, &str, u64)]) -> Vec<String> {
        let answer = |(engine, question, found): &(&str, &str, u64)| {
            let (engine, question) = ((*engine).to_owned(), (*question).to_owned());
            Answer { engine, section: 0, cell: 0, question, found: *found }
        };
        let answers: Vec<Answer> = answers.iter().map(answer).collect();
        odd_ones(&answers).into_iter().map(|(answer, _)| answer.engine.clone()).collect()
    }

    #[test]
    fn most_are_right_where_there_are_most() {
        assert!(odd(&[]).is_empty() && odd(&[("a", "q", 1)]).is_empty());
        assert!(odd(&[("a", "q", 1), ("b", "q", 1), ("c", "q", 1)]).is_empty());
        assert_eq!(odd(&[("a", "q", 1), ("b", "q", 2), ("c", "q", 1)]), ["b"]);
        assert_eq!(odd(&[("a", "q", 1), ("b", "q", 2)]), ["a", "b"]);
        // Engines that wrote or read otherwise are not compared.
        assert!(odd(&[("a", "q", 1), ("b", "r", 2)]).is_empty());
    }
}
