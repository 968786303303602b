//! The results that are kept in the repository.

use std::fs;
use std::path::Path;

#[test]
fn the_links_of_kept_reports_lead_somewhere() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let entries =
        fs::read_dir(&results).expect("results").map(|entry| entry.expect("an entry").path());
    let mut broken = Vec::new();
    for dir in entries.filter(|path| path.is_dir()) {
        let path = dir.join("report.html");
        let page = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let links = files(&page);
        assert!(links.contains(&"run.json"), "{}: {links:?}", path.display());
        broken.extend(links.iter().map(|link| dir.join(link)).filter(|file| !file.is_file()));
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// What a page refers to beside itself.
fn files(page: &str) -> Vec<&str> {
    let values = |attribute| page.split(attribute).skip(1).filter_map(|rest| rest.split_once('"'));
    let links = values(" href=\"").chain(values(" src=\"")).map(|(link, _)| link);
    // The others lead to a place on the page, or have a scheme.
    links.filter(|link| !link.starts_with('#') && !link.contains(':')).collect()
}
