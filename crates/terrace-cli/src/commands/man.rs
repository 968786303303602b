//! `man`: the manual, made of the same words as `--help`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::{Failure, Result};
use crate::output::Output;

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// A directory for all pages, made if it is missing; without one the page of the tool goes to
    /// standard output
    dir: Option<PathBuf>,
}

impl ManArgs {
    pub(crate) fn run(&self, tool: Command, out: &mut Output) -> Result<()> {
        let Some(dir) = &self.dir else {
            let mut page = Vec::new();
            clap_mangen::Man::new(tool)
                .render(&mut page)
                .map_err(|error| Failure::other(format!("cannot make the page: {error}")))?;
            return out.bytes(&page);
        };
        fs::create_dir_all(dir).map_err(|error| Failure::io("create", dir, &error))?;
        clap_mangen::generate_to(tool, dir)
            .map_err(|error| Failure::io("write the pages in", dir, &error))
    }
}
