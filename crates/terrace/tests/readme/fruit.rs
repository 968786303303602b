use terrace::{Db, Options, Result};

fn main() -> Result<()> {
    let db = Db::open("fruit.db", Options::new().create_if_missing(true))?;
    db.put("apple", "red")?;
    db.put("banana", "yellow")?;
    assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
    for entry in db.range("a".."c")?.rev() {
        let (key, value) = entry?;
        println!("{} = {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
    }
    db.close()
}
