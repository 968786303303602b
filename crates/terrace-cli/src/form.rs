//! The form of keys and values in input and output.

use clap::Args;

use crate::text::Notation;

/// How keys and values are written down.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct NotationArgs {
    /// Keys and values are pairs of hexadecimal digits
    #[arg(long, conflicts_with = "base64")]
    hex: bool,
    /// Keys and values are base64
    #[arg(long)]
    base64: bool,
}

/// How keys and values are written down, and whether output is JSON.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct FormArgs {
    #[command(flatten)]
    notation: NotationArgs,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The form of input and output that a command works with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Form {
    pub(crate) notation: Notation,
    pub(crate) json: bool,
}

impl NotationArgs {
    /// The form that the options say, and where they say nothing, `usual`.
    pub(crate) fn over(self, usual: Form) -> Notation {
        match (self.hex, self.base64) {
            (true, _) => Notation::Hex,
            (_, true) => Notation::Base64,
            _ => usual.notation,
        }
    }
}

impl FormArgs {
    /// The form that the options say, and where they say nothing, `usual`.
    pub(crate) fn over(self, usual: Form) -> Form {
        Form { notation: self.notation.over(usual), json: self.json || usual.json }
    }
}
