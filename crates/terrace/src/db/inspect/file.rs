//! The file that is inspected.

use std::path::Path;
use std::sync::Arc;

use crate::base::error::Result;
use crate::env::{RandomAccessFile, ReadAccess};

use crate::db::options::Options;

pub(super) fn open(path: &Path, options: &Options) -> Result<Arc<dyn RandomAccessFile>> {
    // Not mapped: another program may truncate a file while it is read.
    options.env.open_random(path, ReadAccess::Pread)
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
