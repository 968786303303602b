//! A large program that others compiled: Debian's litecoind keeps its chain state, its block index
//! and its index of transactions in LevelDB, with a cache, a filter, `paranoid_checks` and a logger
//! of its own. A private chain on this machine, with the library swapped at each start.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::libraries::{libraries, library_used, outcome, skip};

/// A process that a failed test takes along.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One run of litecoind: what its clients are told, between start and stop.
struct Node<'a> {
    home: &'a Path,
    port: u16,
}

impl Node<'_> {
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // Debian's wrapper keeps a file in the home directory. Nothing here talks to anything but
        // this machine.
        command
            .env("HOME", self.home)
            .args(["-regtest", &format!("-datadir={}", self.home.display())]);
        command.arg(format!("-rpcport={}", self.port)).stdin(Stdio::null());
        command
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let mut client = self.command("litecoin-cli");
        client.args(["-rpcwait", "-rpcclienttimeout=120"]).args(arguments);
        let (status, output) = outcome(&mut client);
        assert!(status.success(), "{arguments:?}: {output}");
        output.trim().to_owned()
    }
}

/// The lines of an answer that describe the set of unspent outputs, without what depends on the
/// files.
fn outputs(answer: &str) -> Vec<String> {
    let told =
        ["\"height\"", "\"bestblock\"", "\"txouts\"", "\"hash_serialized_2\"", "\"total_amount\""];
    answer
        .lines()
        .filter(|line| told.iter().any(|name| line.contains(name)))
        .map(str::to_owned)
        .collect()
}

#[test]
fn litecoind_hands_its_chain_over() {
    let Some(libraries) = libraries() else { return };
    if Command::new("litecoin-cli").arg("-version").output().is_err() {
        return skip("litecoind is not installed");
    }
    let home = tempfile::tempdir().unwrap();
    let (mut address, mut before) = (String::new(), Vec::new());
    for turn in 0..4 {
        let library = if turn % 2 == 0 { libraries.debian.clone() } else { libraries.swapped() };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let node = Node { home: home.path(), port };
        let traced = home.path().join(format!("loader-{turn}"));
        let mut daemon = node.command("litecoind");
        daemon.args([
            "-server",
            "-listen=0",
            "-connect=0",
            "-dnsseed=0",
            "-upnp=0",
            "-txindex",
            "-dbcache=4",
        ]);
        daemon
            .arg("-rpcbind=127.0.0.1")
            .arg("-rpcallowip=127.0.0.1")
            .arg("-checkblocks=0")
            .arg("-checklevel=4");
        daemon
            .env("LD_LIBRARY_PATH", library.parent().unwrap())
            .env("LD_DEBUG", "libs")
            .env("LD_DEBUG_OUTPUT", &traced);
        let mut daemon =
            Daemon(daemon.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        if turn == 0 {
            node.ask(&["createwallet", "purse"]);
            address = node.ask(&["-rpcwallet=purse", "getnewaddress"]);
        }
        assert_eq!(outputs(&node.ask(&["gettxoutsetinfo"])).len(), 5);
        if turn > 0 {
            assert_eq!(outputs(&node.ask(&["gettxoutsetinfo"])), before, "turn {turn}");
        }
        node.ask(&["generatetoaddress", "50", &address]);
        before = outputs(&node.ask(&["gettxoutsetinfo"]));
        assert!(before[0].contains(&format!(" {},", (turn + 1) * 50)), "{before:?}");
        // Checks every block and what it changed against the databases.
        assert_eq!(node.ask(&["verifychain", "4", "0"]), "true");
        node.ask(&["stop"]);
        assert!(daemon.0.wait().unwrap().success());
        assert_eq!(library_used(&traced), Some(library));
    }
    println!("litecoind: 4 starts, 200 blocks, {before:?}");
}
