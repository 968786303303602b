//! `completions`: what a shell reads to complete commands and options.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::Result;
use crate::output::Output;

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell that reads them
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(&self, mut tool: Command, out: &mut Output) -> Result<()> {
        let name = tool.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut tool, name, &mut script);
        out.bytes(&script)
    }
}
