//! How keyspaces are created, opened, listed and dropped, in a database and in one another.

use crate::base::error::{Error, ErrorKind, Result};
use crate::db::db::Db;
use crate::db::range_delete::terms::Terms;
use crate::db::view::catalogue::keyspace_options::KeyspaceOptions;

use super::keyspace::Keyspace;
use super::{
    Parent, create_keyspace, drop_keyspace, keyspaces_within, name, open_keyspace, prefix_within,
};

fn open_or_create(
    options: &KeyspaceOptions,
    open: impl Fn() -> Result<Keyspace>,
    create: impl Fn() -> Result<Option<Keyspace>>,
) -> Result<Keyspace> {
    options.check()?;
    loop {
        match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        // Else another thread has made it in between.
        if let Some(created) = create()? {
            return Ok(created);
        }
    }
}

impl Db {
    /// Makes the keyspace `name`, durably. Its name has 1 to 255 bytes of ASCII from `#` to `~`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// assert_eq!(db.get("!users!7")?.as_deref(), Some(&b"Ada"[..])); // without it
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the name cannot be one, or if
    /// there is such a keyspace, be it only by its keys;
    /// [`NotSupported`](crate::ErrorKind::NotSupported) under a custom comparator. Else those of
    /// [`write_with`](Self::write_with).
    pub fn create_keyspace(
        &self,
        name: impl AsRef<str>,
        options: KeyspaceOptions,
    ) -> Result<Keyspace> {
        Keyspace::create(self, None, name.as_ref(), &options)
    }

    /// Returns the keyspace `name`: one that was created, or that has keys, whichever program has
    /// written them.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// assert_eq!(db.keyspace("users").unwrap_err().kind(), ErrorKind::NotFound);
    /// db.create_keyspace("users", KeyspaceOptions::new())?;
    /// let users = db.keyspace("users")?;
    /// # users.put("7", "Ada")?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is none,
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the name cannot be one;
    /// [`NotSupported`](crate::ErrorKind::NotSupported) under a custom comparator, or if the
    /// keyspace has a setting that this version does not know. Else those of
    /// [`get_with`](Self::get_with).
    pub fn keyspace(&self, name: impl AsRef<str>) -> Result<Keyspace> {
        Keyspace::open(self, None, name.as_ref())
    }

    /// Returns the keyspace `name` if it was created with `options`: for programs that rely on
    /// them.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let options = KeyspaceOptions::new().expiry(true);
    /// db.create_keyspace("sessions", options.clone())?;
    /// assert!(db.keyspace_with("sessions", &options).is_ok());
    /// assert!(db.keyspace_with("sessions", &KeyspaceOptions::new()).is_err());
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if it was created with other ones;
    /// else those of [`keyspace`](Self::keyspace).
    pub fn keyspace_with(
        &self,
        name: impl AsRef<str>,
        options: &KeyspaceOptions,
    ) -> Result<Keyspace> {
        self.keyspace(name)?.checked(options)
    }

    /// Returns the keyspace `name`, which is made with `options`, durably, if there is none.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let sessions = db.open_or_create_keyspace("sessions", KeyspaceOptions::new().expiry(true))?;
    /// sessions.put("ada", "1")?;
    /// let again = db.open_or_create_keyspace("sessions", KeyspaceOptions::new().expiry(true))?;
    /// assert_eq!(again.get("ada")?.as_deref(), Some(&b"1"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`keyspace_with`](Self::keyspace_with) and of
    /// [`create_keyspace`](Self::create_keyspace).
    pub fn open_or_create_keyspace(
        &self,
        name: impl AsRef<str>,
        options: KeyspaceOptions,
    ) -> Result<Keyspace> {
        let name = name.as_ref();
        let open = || self.keyspace_with(name, &options);
        open_or_create(&options, open, || Keyspace::try_create(self, None, name, &options))
    }

    /// Returns the names of all keyspaces, in order, without those within others. Takes time by
    /// their number.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// for name in ["users", "mails"] {
    ///     db.create_keyspace(name, KeyspaceOptions::new())?;
    /// }
    /// assert_eq!(db.keyspaces()?, ["mails", "users"]);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`NotSupported`](crate::ErrorKind::NotSupported) under a custom comparator; else those of
    /// [`get_with`](Self::get_with).
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        keyspaces_within(self.core(), &[])
    }

    /// Deletes the keyspace `name` with all of its entries and all keyspaces within it, as one step
    /// and durably: a [range delete](Self::delete_range_with). Returns whether there was one.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.put("7", "Ada")?;
    /// assert!(db.drop_keyspace("users")?);
    /// assert_eq!(users.get("7").unwrap_err().kind(), ErrorKind::Closed);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`delete_range_with`](Self::delete_range_with), and
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the name cannot be one.
    pub fn drop_keyspace(&self, name: impl AsRef<str>) -> Result<bool> {
        drop_keyspace(self.core(), None, name.as_ref())
    }
}

impl Keyspace {
    /// `None` if there is one already.
    fn try_create(
        db: &Db,
        parent: Parent<'_>,
        name: &str,
        options: &KeyspaceOptions,
    ) -> Result<Option<Self>> {
        let incarnation = create_keyspace(db.core(), parent, name, options)?;
        Ok(incarnation.map(|incarnation| Keyspace { db: db.clone(), incarnation }))
    }

    fn create(db: &Db, parent: Parent<'_>, name: &str, options: &KeyspaceOptions) -> Result<Self> {
        if let Some(created) = Self::try_create(db, parent, name, options)? {
            return Ok(created);
        }
        let prefix = prefix_within(parent, name)?;
        Err(Error::invalid_argument(format!("{} exists already", name::shown(&prefix))))
    }

    fn open(db: &Db, parent: Parent<'_>, name: &str) -> Result<Self> {
        match open_keyspace(db.core(), parent, name)? {
            Some(incarnation) => Ok(Keyspace { db: db.clone(), incarnation }),
            None => {
                let prefix = prefix_within(parent, name)?;
                Err(Error::not_found(format!("there is no {}", &name::shown(&prefix)[4..])))
            }
        }
    }

    /// Makes the keyspace `name` within this one.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// let shop = db.create_keyspace("shop", KeyspaceOptions::new())?;
    /// let orders = shop.create_keyspace("orders", KeyspaceOptions::new())?;
    /// orders.put("1", "apples")?;
    /// assert_eq!(shop.keyspaces()?, ["orders"]);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::create_keyspace`].
    pub fn create_keyspace(
        &self,
        name: impl AsRef<str>,
        options: KeyspaceOptions,
    ) -> Result<Keyspace> {
        self.incarnation.check()?;
        Self::create(&self.db, Some(&self.incarnation), name.as_ref(), &options)
    }

    /// Returns the keyspace `name` within this one.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// # users.create_keyspace("mails", KeyspaceOptions::new())?;
    /// users.keyspace("mails")?.put("1", "Dear Ada")?;
    /// assert_eq!(users.get("!mails!1")?.as_deref(), Some(&b"Dear Ada"[..]));
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::keyspace`].
    pub fn keyspace(&self, name: impl AsRef<str>) -> Result<Keyspace> {
        self.incarnation.check()?;
        Self::open(&self.db, Some(&self.incarnation), name.as_ref())
    }

    /// Returns the keyspace `name` within this one if it was created with `options`.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// let options = KeyspaceOptions::new().expiry(true);
    /// users.create_keyspace("tokens", options.clone())?;
    /// assert!(users.keyspace_with("tokens", &options).is_ok());
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::keyspace_with`].
    pub fn keyspace_with(
        &self,
        name: impl AsRef<str>,
        options: &KeyspaceOptions,
    ) -> Result<Keyspace> {
        self.keyspace(name)?.checked(options)
    }

    /// Returns the keyspace `name` within this one, which is made with `options`, durably, if there
    /// is none.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// let mails = users.open_or_create_keyspace("mails", KeyspaceOptions::new())?;
    /// mails.put("1", "hello")?;
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::open_or_create_keyspace`].
    pub fn open_or_create_keyspace(
        &self,
        name: impl AsRef<str>,
        options: KeyspaceOptions,
    ) -> Result<Keyspace> {
        let name = name.as_ref();
        let open = || self.keyspace_with(name, &options);
        let parent = Some(&*self.incarnation);
        open_or_create(&options, open, || Self::try_create(&self.db, parent, name, &options))
    }

    fn checked(self, options: &KeyspaceOptions) -> Result<Self> {
        if self.options() == options {
            return Ok(self);
        }
        let name = name::shown(self.prefix_bytes());
        let created = self.options();
        let message = format!("{name} was created with {created:?}, not with {options:?}");
        Err(Error::invalid_argument(message))
    }

    /// Returns the names of the keyspaces right within this one, in order.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.create_keyspace("mails", KeyspaceOptions::new())?;
    /// assert_eq!(users.keyspaces()?, ["mails"]);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::keyspaces`].
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        self.incarnation.check()?;
        keyspaces_within(self.db.core(), self.prefix_bytes())
    }

    /// Deletes the keyspace `name` within this one.
    ///
    /// ```
    /// # use terrace::*;
    /// # let options = Options::new().env(std::sync::Arc::new(MemEnv::new()));
    /// # let db = Db::open("/db", options.create_if_missing(true))?;
    /// # let users = db.create_keyspace("users", KeyspaceOptions::new())?;
    /// users.create_keyspace("mails", KeyspaceOptions::new())?;
    /// assert!(users.drop_keyspace("mails")?);
    /// # Ok::<_, terrace::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Db::drop_keyspace`].
    pub fn drop_keyspace(&self, name: impl AsRef<str>) -> Result<bool> {
        self.incarnation.check()?;
        drop_keyspace(self.db.core(), Some(&self.incarnation), name.as_ref())
    }
}
