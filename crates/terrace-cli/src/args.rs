//! The command line: which commands there are, and what they share.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::advise::AdviseCommand;
use crate::bench::BenchArgs;
use crate::commands::completions::CompletionsArgs;
use crate::commands::convert::ConvertCommand;
use crate::commands::entries::{DeleteArgs, DeleteRangeArgs, GetArgs, PutArgs};
use crate::commands::inspect::InspectArgs;
use crate::commands::keyspace::{
    CreateKeyspaceArgs, DropKeyspaceArgs, ListKeyspacesArgs, StatKeyspaceArgs,
};
use crate::commands::man::ManArgs;
use crate::commands::prepared::{CommitPreparedArgs, ListPreparedArgs, RollbackPreparedArgs};
use crate::commands::report::{FilesArgs, StatArgs};
use crate::commands::scan::ScanArgs;
use crate::commands::shell::ShellCommand;
use crate::commands::transfer::{BatchArgs, DumpArgs, LoadArgs};
use crate::commands::update::{CasArgs, UpdateArgs};
use crate::commands::upkeep::{
    CheckpointArgs, CompactArgs, DestroyCommand, RepairCommand, VerifyCommand,
};
use crate::commands::{Run, Session};
use crate::failure::Result;
use crate::form::Form;
use crate::help;
use crate::opening::{Missing, OpenArgs, Opened, WriteArgs};
use crate::output::Output;

const AFTER_HELP: &str = "\
Keys and values are text: \\xNN stands for a byte, \\\\ for a backslash, \\t, \\n and \\r for TAB,
newline and carriage return; everything else stands for itself. With --hex or --base64 they are
read and printed in that form instead. Write `--` before a key that begins with a dash.
In JSON a string is the text itself, and bytes that are not UTF-8 are {\"base64\": \"...\"}.
Lines of input may end as on Windows: a carriage return before the newline is none of their text.

Exit status: 0 all is well; 1 the answer is no: the key, the keyspace or the prepared transaction is
not there, the value is another one, what was checked is damaged, or what was printed or copied lacks
a part of a damaged log; 2 an error: wrong usage, damage that the command met, or another failure.

Examples:
  terrace put --create /tmp/fruit apple red      a new database with one entry
  terrace get /tmp/fruit apple                   prints: red
  terrace scan /tmp/fruit --prefix a --limit 10  the first ten entries that begin with a
  terrace dump /tmp/fruit > fruit.txt            everything, as text; `terrace load` reads it back
  terrace shell /tmp/fruit                       the same commands, interactively
  terrace verify /tmp/fruit                      reads every byte and checks it
  terrace help scan                              more about a command, with examples";

/// Look into, change, check and measure databases of Terrace and LevelDB.
#[derive(Parser, Debug)]
#[command(name = "terrace", version, after_help = AFTER_HELP, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Store a value under a key
    #[command(after_help = "\
The write is durable when the command returns.

Examples:
  terrace put DB apple red
  terrace put --create DB apple red              the same; makes the database if there is none
  terrace put DB 'tab\\there' '\\x00\\xff'          bytes as escapes
  terrace put --hex DB 6b6579 00ff               bytes as hexadecimal digits
  terrace put DB photo --value-file photo.jpg    the bytes of a file
  terrace put DB -- -1 minus-one                 a key that begins with a dash")]
    Put(Creating<PutArgs>),

    /// Print the value of a key
    #[command(after_help = "\
Exit status 1 if the key is not there; 2 if that cannot be told, because of damage or another error.

Examples:
  terrace get DB apple
  terrace get --raw DB photo > photo.jpg         the bytes themselves, without a newline
  terrace get --json DB apple                    {\"key\":\"apple\",\"value\":\"red\"}")]
    Get(Reading<GetArgs>),

    /// Remove a key
    #[command(after_help = "\
Removing a key that is not there is no error. The removal is durable when the command returns.

Examples:
  terrace delete DB apple
  terrace delete --hex DB 6b6579")]
    Delete(Writing<DeleteArgs>),

    /// Set a value, or remove it, if it is the expected one
    #[command(after_help = "\
Looking and writing are one step: no other writer comes in between. The write is durable when the
command returns. In a keyspace with expiry the new value lives as long as --ttl says, or as the
keyspace says. While another process has the database open the command fails at once and changes
nothing; with --wait SECONDS it waits for it.

Exit status 1, and nothing changed, if the value is another one; 2 if that cannot be told: the
database is busy or damaged, or there is another error.

Examples:
  terrace cas DB leader anna --if-absent         the first one wins
  terrace cas DB leader berta --if anna
  terrace cas DB leader --delete --if berta")]
    Cas(Creating<CasArgs>),

    /// Add to a number or append to a value, in one step, and print the new value
    #[command(after_help = "\
Reading and writing are one step: no other writer comes in between, and nothing that others write is
lost. The write is durable when the command returns. In a keyspace with expiry the new value lives
as long as --ttl says, or as the keyspace says. While another process has the database open the
command fails at once and changes nothing; with --wait SECONDS it waits for it.

Exit status 2 if the database is busy.

Examples:
  terrace update DB stock:7 --add -1             a number in digits; none counts as 0
  terrace update DB hits --add 1 --wait 10       while other commands may do the same
  terrace update DB hits --add 1 --counter       the eight bytes of Counter and terrace/c.h
  terrace update DB tags --append ripe --separator ,")]
    Update(Creating<UpdateArgs>),

    /// Remove every key of a range, all of them or none
    #[command(after_help = "\
FROM is part of the range, TO is not; --from alone means all from there on, --to alone all before.
A large range takes about as long as a small one: its tables are removed, and their space is free at
once. The removal is durable when the command returns.

Examples:
  terrace delete-range DB 2026-01 2026-07        keys from 2026-01 on, and before 2026-07
  terrace delete-range DB --from 2026-07         all from there on
  terrace delete-range DB --prefix user:7:")]
    DeleteRange(Writing<DeleteRangeArgs>),

    /// Print entries in the order of their keys
    #[command(after_help = "\
--from is part of the range, --to is not. One entry a line: key, TAB, value. Without --keyspace
entries of keyspaces are among them, as !NAME!KEY; those of Terrace itself, !$terrace!..., are left
out unless --prefix or --from begins with that.

Exit status 1 if a damaged log was cut, as a warning says then: what is printed lacks what is behind
the damage. 2 if damage or another error ended the scan.

Examples:
  terrace scan DB                                everything
  terrace scan DB --from a --to c                keys that begin with a or b
  terrace scan DB --prefix user: --keys-only
  terrace scan DB --reverse --limit 1            the last entry
  terrace scan DB --prefix user: --count         how many
  terrace scan DB --json | jq -r .key")]
    Scan(Reading<ScanArgs>),

    /// Read entries from a file or standard input into a database
    #[command(after_help = "\
Creates the database if there is none. All entries come into it at the same moment, at the end of
the input, past the log: until then nothing of them is there, also if the command is killed or the
disk is full. When a line is wrong the command says which, and the entries before it are loaded.
What was loaded is durable when the command returns. A carriage return before a newline belongs to
the end of the line, in every format; at the end of a value it is written \\r, as `terrace dump`
does. What is loaded goes to tables: with --value-log, compactions move its large values to value
files, and `terrace convert` all of them at once.

A dump of a whole database has the settings of its keyspaces. Nothing is loaded if the database has
a keyspace of that name with other settings: then copy its entries with --keyspace in both commands.

JSON input is one object a line, {\"key\": \"...\", \"value\": \"...\"}: strings are stored as they are,
and bytes that are not UTF-8 are written {\"base64\": \"...\"}. Earlier versions of `dump --json` wrote
escapes such as \\x00 into its strings. They are not undone now; load such a dump with
  jq -r '.key + \"\\t\" + .value' OLD.json | terrace load DB

Examples:
  terrace load DB entries.txt                    one entry a line: key, TAB, value
  printf 'a\\t1\\nb\\t2\\n' | terrace load DB
  set -o pipefail                                (bash) a dump that fails must not look like success
  terrace dump OLD | terrace load NEW            copy a database
  db_dump old.db | terrace load DB --format bdb  from Berkeley DB")]
    Load(Loading),

    /// Write all entries of a database to a file or standard output
    #[command(after_help = "\
`terrace load` reads every format back. A file takes its place when the dump is complete: one that
is there stays as it is until then, and if the dump fails. A dump of the whole database keeps
keyspaces, their settings and times of expiry, and leaves prepared transactions out; with --keyspace
it has the entries that are there now, without their times.

Exit status 1 if a damaged log was cut, as a warning says then: the dump is written, and lacks what
is behind the damage. 2 if damage or another error ended the dump.

Examples:
  terrace dump DB > entries.txt                  one entry a line: key, TAB, value
  terrace dump DB entries.json --format json
  terrace dump DB --format bdb | db_load new.db  into Berkeley DB
  terrace dump DB --prefix user: --hex")]
    Dump(Reading<DumpArgs>),

    /// Apply put and delete lines from a file or standard input, all of them or none
    #[command(after_help = "\
A line is `put KEY VALUE` or `delete KEY`. The words are separated by one TAB each; in a line
without a TAB, by spaces, and then quotes hold words with spaces together. Empty lines and lines
that begin with # are passed over; a carriage return before a newline belongs to the end of the
line. All changes become visible at once and are durable when the command returns; after a wrong
line nothing is changed.

Examples:
  printf 'put a 1\\ndelete b\\n' | terrace batch DB
  terrace batch DB changes.txt")]
    Batch(Creating<BatchArgs>),

    /// Create, list and drop keyspaces, and count their entries: named sets of keys in one database
    #[command(after_help = "\
The keys of the keyspace `users` are those of the database that begin with !users!, as in a sublevel
of abstract-level; those of `archived` within it begin with !users!!archived!. Commands on entries
take --keyspace NAME. A name is ASCII from # to ~. Dropping a keyspace removes its entries and the
keyspaces within it, all of it or nothing, and durably.

In a keyspace that is created with --expiry entries may have a time to live: put --ttl SECONDS, or
--ttl SECONDS of the keyspace. After it no command shows them, and compactions remove them.

Exit status 1 if there is no keyspace of that name, in the commands with --keyspace, too; 2 if
damage or another error leaves that open.

Examples:
  terrace keyspace create DB users               --create makes the database, too
  terrace keyspace create DB users archived      archived within users
  terrace keyspace create --expiry --ttl 3600 DB sessions
  terrace put DB --keyspace users ada '{}'
  terrace scan DB --keyspace users --keyspace archived
  terrace keyspace list DB
  terrace keyspace stat DB users
  terrace keyspace drop DB users")]
    #[command(subcommand)]
    Keyspace(KeyspaceCommand),

    /// List, commit and roll back prepared transactions: those that wait for a decision
    #[command(after_help = "\
A transaction that a program or `prepare NAME` in `terrace shell` has prepared keeps its keys locked
until it is committed or rolled back; put and other commands wait for them, and fail after 10
seconds. `list` prints name, number of writes, and `prepared`, or `overtaken` if a program that
knows no locks has written one of its keys: such a transaction can only be rolled back. A decision
is durable when the command returns.

Exit status 1 if there is no transaction of that name; 2 if damage or another error leaves that open.

Examples:
  terrace prepared list DB
  terrace prepared commit DB 'transfer 7'
  terrace prepared rollback DB 'transfer 8'")]
    #[command(subcommand)]
    Prepared(PreparedCommand),

    /// Show levels, sizes and counters
    #[command(after_help = "\
Counters begin when a database is opened, so here they count what this command did; `stat` in
`terrace shell` shows them for a whole session.

Examples:
  terrace stat DB
  terrace stat DB --json | jq .levels")]
    Stat(Reading<StatArgs>),

    /// List the files of a database: levels, sizes, key ranges
    #[command(after_help = "\
Examples:
  terrace files DB
  terrace files DB --json | jq 'select(.level == 0) | .name'")]
    Files(Reading<FilesArgs>),

    /// Show what is in a table, a log, a value file, a MANIFEST or CURRENT
    #[command(after_help = "\
Which kind of file it is follows from its name or, failing that, from what is in it. Nothing but
this one file is read, so files of a damaged database can be looked at too.

Exit status 1 if the file is damaged, 2 if it cannot be read.

Examples:
  terrace inspect DB/000005.ldb                  footer, index and blocks of a table
  terrace inspect DB/000005.ldb --keys           every entry, deleted and overwritten ones included
  terrace inspect DB/000007.log --values         every record and its operations
  terrace inspect DB/000009.vlog --keys          the keys of the values in a value file
  terrace inspect DB/MANIFEST-000004             the history of the set of tables
  terrace inspect DB/*.ldb --summary             several files, one after the other
  terrace inspect DB/000005.ldb --summary --json")]
    Inspect(InspectArgs),

    /// Say which settings suit a database, and why
    #[command(after_help = crate::advise::AFTER_HELP)]
    Advise(AdviseCommand),

    /// Check every checksum, the order of all keys, the levels and the MANIFEST
    #[command(after_help = "\
Changes nothing. Says what is wrong, and in which file; of many problems in a file the first five,
with --json all.

Exit status 1 if anything is.

Examples:
  terrace verify DB
  terrace verify DB --json | jq .problems")]
    Verify(VerifyCommand),

    /// Save what can be saved of a database that does not open
    #[command(after_help = "\
Try `terrace verify` first, and keep a copy: a repair keeps whatever can still be read. Files that
cannot be used are moved to the directory lost/ inside the database, not removed.

Exit status 0 if nothing was wrong with the database as it was found. 1 if anything was, also where
the database is whole again as far as can be told: entries may be lost, and deleted or overwritten
ones may be back. Even when only the MANIFEST was missing nothing else tells which tables there
were.

A log of LevelDB's that is damaged in its middle is cut there at an open, with a warning. Until a
command or a program opens the database for writing, `terrace repair DB` or
`terrace dump DB --recovery salvage` read what lies behind the damage. An open for writing keeps the
whole log as it was in lost/, and goes on without what lies behind the damage; a repair after it
finds nothing wrong, names the log and does not read it. A database of the log alone shows what can
be read of it: compare before you load it, for writes since then may be newer.

Examples:
  cp -a DB DB.copy && terrace repair DB
  terrace repair DB --json | jq .problems
  mkdir SAVED && cp DB/lost/000003.log SAVED     a database of the log alone
  terrace repair SAVED; terrace dump SAVED       what can be read of it
  terrace inspect DB/lost/000003.log --values    every write in it, deletes too, in their order")]
    Repair(RepairCommand),

    /// Compact tables until deleted and overwritten entries are gone
    #[command(after_help = "\
--from and --to are both part of the range here. Values of the tables that it rewrites go to value
files with --value-log, and come back from them into tables without. Tables that are compact already
are not rewritten: what brings all values back into tables is --force without --value-log, or
`terrace convert DB --to plain`. The command ends when value files of which less than half is used
are cleaned, too.

Examples:
  terrace compact DB                             everything
  terrace compact DB --from a --to b
  terrace compact DB --force --compression none  rewrites all of it, also what is compact already
  terrace compact DB --value-log 4K              keeps large values in value files")]
    Compact(Writing<CompactArgs>),

    /// Make a database plain, for LevelDB, or extended, with large values in value files
    #[command(after_help = "\
An extended database keeps values from --value-log on, 4K unless it says otherwise, in value files,
uncompressed, so that compactions do not copy them again and again. LevelDB refuses to open it. It
is extended while it has value files: where a program opens it without Options::value_log, or a
command without --value-log, compactions bring values back into tables. Tables with LZ4 or zstd make
a database extended, too. A plain database is one that LevelDB opens.

All tables are rewritten in place, with the --compression given or else snappy, and with free space
for a second copy of them. No other program may have the database open. A conversion that is killed
leaves a whole database, which a second run converts.

Examples:
  terrace convert DB --to extended               values of 4 KiB and more into value files
  terrace convert DB --to extended --value-log 64K
  terrace convert DB --to extended --compression lz4
  terrace convert DB --to plain                  for LevelDB
  terrace convert DB --to plain --json | jq .after")]
    Convert(ConvertCommand),

    /// Make a copy of a database, sharing its files by hard links where that can be
    #[command(after_help = "\
The copy is a database of its own, for LevelDB, too, if this one is. Its tables and value files take
no more space on the same file system until the database gives them up; on another one they are
copied. DB itself is not changed, and must not be open for writing in another program: that makes a
checkpoint by itself, or by `checkpoint` in `terrace shell`. TO must be absent or empty, and not in
DB. After a failure it holds no database.

Exit status 1 if a damaged log was cut, as a warning says then: the copy is made, and lacks what is
behind the damage.

Examples:
  terrace checkpoint DB /backups/2026-11-22
  terrace checkpoint DB /mnt/other/DB && terrace verify /mnt/other/DB")]
    Checkpoint(Reading<CheckpointArgs>),

    /// Remove a database from the disk
    #[command(after_help = "\
Removes the database's own files, and the directory if nothing else is in it.

Examples:
  terrace destroy DB --yes")]
    Destroy(DestroyCommand),

    /// Work on a database interactively
    #[command(after_help = "\
The commands are those of the tool, without the database: `put apple red`, `scan --prefix a`;
`.help` lists them. Input may also come from a pipe or a file: then every command runs, even when
the output is closed, as `| head` does; failures are reported with their line, and the exit status
is the worst of them; with --bail the first failure ends it.

On a terminal lines that are typed are kept in ~/.terrace_history for later sessions, or in the file
that the environment variable TERRACE_HISTORY names; if it is empty they are not kept.

Examples:
  terrace shell DB
  terrace shell --create DB                      makes the database if there is none
  terrace shell --read-only DB                   changes nothing, not even at opening
  printf 'put a 1\\nscan\\n' | terrace shell DB")]
    Shell(ShellCommand),

    /// Measure the engine, with the workloads and names of LevelDB's db_bench
    #[command(after_help = crate::bench::AFTER_HELP)]
    Bench(BenchArgs),

    /// Print completions for a shell
    #[command(after_help = "\
Examples:
  terrace completions bash > ~/.local/share/bash-completion/completions/terrace
  terrace completions zsh > ~/.zfunc/_terrace    in a directory of $fpath
  terrace completions fish > ~/.config/fish/completions/terrace.fish")]
    Completions(CompletionsArgs),

    /// Write the manual: one page for the tool, one for each command
    #[command(after_help = "\
Examples:
  terrace man | man -l -                         reads the page of the tool
  terrace man ~/.local/share/man/man1            writes terrace.1, terrace-scan.1 and the others")]
    Man(ManArgs),
}

#[derive(Subcommand, Debug)]
enum KeyspaceCommand {
    /// Make a keyspace
    Create(Creating<CreateKeyspaceArgs>),
    /// List the names of the keyspaces
    List(Reading<ListKeyspacesArgs>),
    /// Count the entries of a keyspace
    Stat(Reading<StatKeyspaceArgs>),
    /// Remove a keyspace with all that is in it
    Drop(Writing<DropKeyspaceArgs>),
}

#[derive(Subcommand, Debug)]
enum PreparedCommand {
    /// List the prepared transactions
    List(Reading<ListPreparedArgs>),
    /// Commit a prepared transaction
    Commit(Writing<CommitPreparedArgs>),
    /// Forget a prepared transaction
    Rollback(Writing<RollbackPreparedArgs>),
}

/// A command that reads a database.
#[derive(Args, Debug)]
struct Reading<A: Args> {
    /// Directory of the database
    db: PathBuf,
    #[command(flatten)]
    args: A,
    #[command(flatten)]
    open: OpenArgs,
}

/// A command that changes a database that exists.
#[derive(Args, Debug)]
struct Writing<A: Args> {
    /// Directory of the database
    db: PathBuf,
    #[command(flatten)]
    args: A,
    #[command(flatten)]
    write: WriteArgs,
}

/// A command that changes a database and may be told to create it.
#[derive(Args, Debug)]
struct Creating<A: Args> {
    /// Directory of the database
    db: PathBuf,
    #[command(flatten)]
    args: A,
    /// Make the database if there is none
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    write: WriteArgs,
}

/// The command that creates a database unless told not to.
#[derive(Args, Debug)]
struct Loading {
    /// Directory of the database
    db: PathBuf,
    #[command(flatten)]
    args: LoadArgs,
    /// Make the database if there is none, which is the default
    #[arg(long, conflicts_with = "no_create")]
    create: bool,
    /// Fail if there is no database
    #[arg(long)]
    no_create: bool,
    #[command(flatten)]
    write: WriteArgs,
}

impl Cli {
    /// The tool with its help as it is shown.
    fn tool() -> clap::Command {
        help::joined(Self::command())
    }

    /// What the arguments of the process say.
    pub(crate) fn parsed() -> std::result::Result<Self, clap::Error> {
        Self::from_arg_matches(&Self::tool().try_get_matches()?)
    }

    pub(crate) fn run(self, out: &mut Output) -> Result<()> {
        match self.command {
            Command::Put(command) => command.run(out),
            Command::Get(command) => command.run(out),
            Command::Cas(command) => command.run(out),
            Command::Update(command) => command.run(out),
            Command::Delete(command) => command.run(out, WriteArgs::open_for_few_writes),
            Command::DeleteRange(command) => command.run(out, WriteArgs::open_for_few_writes),
            Command::Scan(command) => command.run(out),
            Command::Load(command) => {
                let missing = if command.no_create { Missing::Fail } else { Missing::Create };
                let open = || command.write.open_for_many_writes(&command.db, missing);
                let session = Session::new(&command.db, Form::default(), &open)
                    .with_value_log(command.write.value_log());
                run_in(session, &command.args, out)
            }
            Command::Dump(command) => command.run(out),
            Command::Batch(command) => command.run(out),
            Command::Keyspace(KeyspaceCommand::Create(command)) => command.run(out),
            Command::Keyspace(KeyspaceCommand::List(command)) => command.run(out),
            Command::Keyspace(KeyspaceCommand::Stat(command)) => command.run(out),
            Command::Keyspace(KeyspaceCommand::Drop(command)) => {
                command.run(out, WriteArgs::open_for_few_writes)
            }
            Command::Prepared(PreparedCommand::List(command)) => {
                let open = || command.open.open_for_prepared(&command.db);
                in_session(&command.db, &open, &command.args, out)
            }
            Command::Prepared(PreparedCommand::Commit(command)) => {
                command.run(out, WriteArgs::open_for_few_writes)
            }
            Command::Prepared(PreparedCommand::Rollback(command)) => {
                command.run(out, WriteArgs::open_for_few_writes)
            }
            Command::Stat(command) => command.run(out),
            Command::Files(command) => command.run(out),
            Command::Inspect(command) => command.run(Form::default(), out),
            Command::Advise(command) => command.run(out),
            Command::Verify(command) => command.run(out),
            Command::Repair(command) => command.run(out),
            Command::Compact(command) => command.run(out, WriteArgs::open_for_many_writes),
            Command::Convert(command) => command.run(out),
            Command::Checkpoint(command) => command.run(out),
            Command::Destroy(command) => command.run(out),
            Command::Shell(command) => command.run(out),
            Command::Bench(command) => command.run(out),
            Command::Completions(command) => command.run(Cli::tool(), out),
            Command::Man(command) => command.run(Cli::tool(), out),
        }
    }
}

impl<A: Args + Run> Reading<A> {
    fn run(&self, out: &mut Output) -> Result<()> {
        in_session(&self.db, &|| self.open.open(&self.db), &self.args, out)
    }
}

impl<A: Args + Run> Writing<A> {
    fn run(
        &self,
        out: &mut Output,
        open: impl Fn(&WriteArgs, &Path, Missing) -> Result<Opened>,
    ) -> Result<()> {
        in_session(&self.db, &|| open(&self.write, &self.db, Missing::Fail), &self.args, out)
    }
}

impl<A: Args + Run> Creating<A> {
    fn run(&self, out: &mut Output) -> Result<()> {
        let open = || self.write.open_for_few_writes(&self.db, Missing::create_if(self.create));
        in_session(&self.db, &open, &self.args, out)
    }
}

/// Runs a command in a session of its own. The first failure counts; closing is tried in any case.
fn in_session(
    path: &Path,
    open: &dyn Fn() -> Result<Opened>,
    command: &impl Run,
    out: &mut Output,
) -> Result<()> {
    run_in(Session::new(path, Form::default(), open), command, out)
}

fn run_in(session: Session<'_>, command: &impl Run, out: &mut Output) -> Result<()> {
    let result = command.run(&session, out);
    result.and(session.close())
}
