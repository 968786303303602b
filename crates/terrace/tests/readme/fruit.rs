use terrace::{Db, Options, WriteBatch, WriteOptions};

fn main() -> terrace::Result<()> {
    let db = Db::open("fruit.db", Options::new().create_if_missing(true))?;
    db.put("apple", "red")?;
    db.put("banana", "yellow")?;

    let before = db.snapshot();
    let mut batch = WriteBatch::new();
    batch.put("apple", "green");
    batch.delete("banana");
    db.write_with(&batch, WriteOptions::sync())?; // both or neither, and on the disk

    assert_eq!(db.get("apple")?.as_deref(), Some(&b"green"[..]));
    assert_eq!(before.get("apple")?.as_deref(), Some(&b"red"[..]));
    for entry in before.range("a".."c")?.rev() {
        let (key, value) = entry?;
        println!("{} = {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
    }

    db.transact(|transaction| -> terrace::Result<()> {
        let apple = transaction.get("apple")?.unwrap_or_default();
        transaction.put("pear", apple);
        transaction.delete("apple");
        Ok(())
    })?; // all of it as of one moment; done again if others came in between
    db.close()
}
