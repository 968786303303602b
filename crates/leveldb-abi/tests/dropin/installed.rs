//! The files that `make install` installs, used by real builds; and the library swapped under an
//! installed program, and back.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::libraries::{
    CRATE, Libraries, libraries, library_used, outcome, skip, skip_for_rights, succeeded,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// `make TARGET`, in the profile of this test.
fn make(libraries: &Libraries, target: &str) -> Command {
    let mut make = Command::new("make");
    make.args(["-s", "-C", ROOT, target]);
    libraries.build_environment(&mut make);
    // This may run under `make test`, whose settings are not this one's.
    for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
        make.env_remove(variable);
    }
    make
}

/// Runs a program with a fresh directory for its database. Its library is where `search` says, or
/// where the program does.
fn printed(program: &Path, search: Option<&Path>) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Command::new(program);
    run.arg(dir.path().join("db")).env_remove("LD_LIBRARY_PATH");
    if let Some(search) = search {
        run.env("LD_LIBRARY_PATH", search);
    }
    String::from_utf8(succeeded(run).stdout).unwrap()
}

/// The shared libraries that a program names.
fn needed(program: &Path) -> String {
    let mut readelf = Command::new("readelf");
    readelf.arg("-d").arg(program);
    let dynamic = String::from_utf8(succeeded(readelf).stdout).unwrap();
    dynamic.lines().filter(|line| line.contains("(NEEDED)")).collect()
}

/// Every file under a directory, by its path there.
fn tree(directory: &Path) -> Vec<PathBuf> {
    let mut pending = vec![directory.to_owned()];
    let mut found = Vec::new();
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap()) {
            match entry.file_type().unwrap().is_dir() {
                true => pending.push(entry.path()),
                false => found.push(entry.path().strip_prefix(directory).unwrap().to_owned()),
            }
        }
    }
    found.sort();
    found
}

const PROGRAMS: [(&str, &str, &str, &str); 2] = [
    ("plain.c", "gcc", "-std=c11", "from C 1.23\n"),
    ("classes.cc", "g++", "-std=c++17", "from C++ 1.23\n"),
];

/// Builds both programs as a user of pkg-config does, shared and static.
fn built_by_pkg_config(installed: &Path, out: &Path) {
    let flags = |arguments: &[&str]| {
        let mut query = Command::new("pkg-config");
        query
            .args(arguments)
            .arg("leveldb")
            .env("PKG_CONFIG_PATH", installed.join("lib/pkgconfig"));
        String::from_utf8(succeeded(query).stdout).unwrap()
    };
    assert_eq!(flags(&["--modversion"]).trim(), "1.23.0");
    for (source, compiler, standard, expected) in PROGRAMS {
        for linking in ["shared", "static"] {
            let program = out.join(format!("{source}.{linking}"));
            let mut compile = Command::new(compiler);
            compile
                .arg(standard)
                .arg(Path::new(CRATE).join("tests/programs/installed").join(source));
            compile.arg("-o").arg(&program);
            match linking {
                "shared" => compile.args(flags(&["--cflags", "--libs"]).split_whitespace()),
                _ => compile
                    .arg("-static")
                    .args(flags(&["--static", "--cflags", "--libs"]).split_whitespace()),
            };
            succeeded(compile);
            let search = (linking == "shared").then(|| installed.join("lib"));
            assert_eq!(printed(&program, search.as_deref()), expected, "{source}, {linking}");
            assert_eq!(
                needed(&program).contains("[libleveldb.so.1]"),
                linking == "shared",
                "{source}, {linking}"
            );
        }
    }
}

/// Builds both programs as a user of CMake does, shared and static.
fn built_by_cmake(installed: &Path, out: &Path) {
    for (statically, directory) in
        [("OFF", out.join("cmake-shared")), ("ON", out.join("cmake-static"))]
    {
        let mut configure = Command::new("cmake");
        configure
            .arg("-S")
            .arg(Path::new(CRATE).join("tests/programs/installed"))
            .arg("-B")
            .arg(&directory);
        configure.arg(format!("-DCMAKE_PREFIX_PATH={}", installed.display()));
        configure.arg(format!("-Dleveldb_USE_STATIC_LIBS={statically}"));
        succeeded(configure);
        let mut build = Command::new("cmake");
        build.arg("--build").arg(&directory);
        succeeded(build);
        for (source, _, _, expected) in PROGRAMS {
            let program = directory.join(source.split('.').next().unwrap());
            assert_eq!(printed(&program, None), expected, "{source}, static {statically}");
            assert_eq!(
                needed(&program).contains("[libleveldb.so.1]"),
                statically == "OFF",
                "{source}"
            );
        }
    }
}

#[test]
fn an_installed_library_serves_real_builds_and_goes_away_again() {
    let Some(libraries) = libraries() else { return };
    for tool in ["make", "cmake", "pkg-config"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return skip(&format!("there is no {tool}"));
        }
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Staged as a packager does, then moved to where it is going to be.
    let (stage, prefix) = (dir.path().join("stage"), dir.path().join("prefix"));
    let mut install = make(libraries, "install");
    install.arg(format!("PREFIX={}", prefix.display())).arg(format!("DESTDIR={}", stage.display()));
    succeeded(install);
    let staged = stage.join(prefix.strip_prefix("/").unwrap());
    assert!(!prefix.exists(), "DESTDIR is where everything goes");
    let files = tree(&staged);
    for expected in
        ["lib/libleveldb.so.1d", "lib/libleveldb.so.1", "lib/libleveldb.so", "lib/libleveldb.a"]
    {
        assert!(files.contains(&PathBuf::from(expected)), "{files:?}");
    }
    let headers = files.iter().filter(|file| file.starts_with("include/leveldb")).count();
    assert_eq!(headers, 16, "{files:?}");
    fs::rename(&staged, &prefix).unwrap();
    built_by_pkg_config(&prefix, dir.path());
    built_by_cmake(&prefix, dir.path());
    fs::write(prefix.join("lib/another"), "").unwrap();
    let mut uninstall = make(libraries, "uninstall");
    uninstall.arg(format!("PREFIX={}", prefix.display()));
    succeeded(uninstall);
    assert_eq!(tree(&prefix), [Path::new("lib/another")], "what else is there stays");
}

#[test]
fn a_leveldb_in_the_same_place_stays_unless_forced_away() {
    let Some(libraries) = libraries() else { return };
    if Command::new("make").arg("--version").output().is_err() {
        return skip("there is no make");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let prefix = dir.path().join("a prefix");
    let theirs = ["include/leveldb/another.h", "include/leveldb/db.h", "lib/libleveldb.so.1"]
        .map(PathBuf::from);
    for file in &theirs {
        fs::create_dir_all(prefix.join(file).parent().unwrap()).unwrap();
        fs::write(prefix.join(file), "theirs").unwrap();
    }
    let is_theirs = |file: &PathBuf| fs::read(prefix.join(file)).unwrap() == b"theirs";
    let make = |target: &str, more: &[&str]| {
        let mut make = make(libraries, target);
        outcome(make.arg(format!("PREFIX={}", prefix.display())).args(more))
    };
    for (target, message) in [("uninstall", "lib/terrace-dropin.files"), ("install", "FORCE=1")] {
        let (status, output) = make(target, &[]);
        assert!(!status.success() && output.contains(message), "{target}: {status}\n{output}");
        assert_eq!(tree(&prefix), theirs, "{target} changes nothing");
        assert!(theirs.iter().all(is_theirs), "{target} changes nothing");
    }
    let (status, output) = make("install", &["FORCE=1"]);
    assert!(status.success(), "{output}");
    assert!(is_theirs(&theirs[0]) && !is_theirs(&theirs[1]) && !is_theirs(&theirs[2]));
    // Its own files it replaces, and takes away what it no longer has.
    let list = prefix.join("lib/terrace-dropin.files");
    let listed = fs::read_to_string(&list).unwrap();
    fs::write(prefix.join("include/leveldb/old.h"), "").unwrap();
    fs::write(&list, format!("{listed}include/leveldb/old.h\n")).unwrap();
    let (status, output) = make("install", &[]);
    assert!(status.success(), "{output}");
    assert!(!prefix.join("include/leveldb/old.h").exists());
    assert_eq!(fs::read_to_string(&list).unwrap(), listed);
    let (status, output) = make("uninstall", &[]);
    assert!(status.success(), "{output}");
    assert_eq!(tree(&prefix), theirs[..1], "what it did not put there stays");
    assert!(is_theirs(&theirs[0]) && !prefix.join("lib/pkgconfig").exists());
}

#[test]
fn everybody_may_read_what_is_installed_and_no_link_is_followed() {
    let Some(libraries) = libraries() else { return };
    if Command::new("make").arg("--version").output().is_err() {
        return skip("there is no make");
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (prefix, outside) = (dir.path().join("prefix"), dir.path().join("outside"));
    fs::write(&outside, "not ours").unwrap();
    fs::create_dir_all(prefix.join("lib")).unwrap();
    // The name of a temporary file if it could be foreseen.
    for name in ["libleveldb.so.1d.new", "libleveldb.a.tmp", "terrace-dropin.files.new"] {
        symlink(&outside, prefix.join("lib").join(name)).unwrap();
    }
    let mut install = Command::new("sh");
    install.args(["-c", "umask 077 && exec \"$@\"", "sh", "make", "-s", "-C", ROOT, "install"]);
    install.arg(format!("PREFIX={}", prefix.display()));
    libraries.build_environment(&mut install);
    for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
        install.env_remove(variable);
    }
    succeeded(install);
    assert_eq!(fs::read(&outside).unwrap(), b"not ours");
    for file in tree(&prefix) {
        let metadata = fs::symlink_metadata(prefix.join(&file)).unwrap();
        let directory = fs::metadata(prefix.join(&file).parent().unwrap()).unwrap();
        assert!(metadata.is_symlink() || metadata.mode() & 0o444 == 0o444, "{}", file.display());
        assert_eq!(directory.mode() & 0o555, 0o555, "{}", file.display());
        assert!(!file.to_string_lossy().contains(".terrace-dropin"), "{}", file.display());
    }
}

/// A program may link the static library beside another one that has Rust's runtime in it.
#[test]
fn the_static_library_has_no_global_symbols_but_leveldbs() {
    let Some(libraries) = libraries() else { return };
    let mut nm = Command::new("nm");
    nm.args(["-g", "--defined-only"]).arg(libraries.ours.join("lib/libleveldb.a"));
    let output = String::from_utf8(succeeded(nm).stdout).unwrap();
    let symbols = output.lines().filter_map(|line| line.split(' ').nth(2));
    // Objects inside functions of C++'s standard library are the same one everywhere.
    let (ours, foreign): (Vec<_>, Vec<_>) = symbols
        .partition(|name| ["leveldb", "terrace_", "_ZZNSt"].iter().any(|part| name.contains(part)));
    assert!(ours.len() > 200, "{output}");
    assert_eq!(foreign, [""; 0]);
}

/// The commands of the block in `docs/dropin.md` that has `wanted` in it, without their remarks.
fn shown(wanted: &str) -> Vec<String> {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/dropin.md")).unwrap();
    let mut blocks = page.split("```").skip(1).step_by(2).filter(|block| block.contains(wanted));
    let block = blocks.next().unwrap_or_else(|| panic!("no block shows {wanted}"));
    let commands = block.lines().filter_map(|line| line.strip_prefix("$ "));
    commands.map(|command| command.split("    #").next().unwrap().trim().to_owned()).collect()
}

/// A line of shell that has plyvel write or read, and says in a file which library that was.
fn plyvel(statement: &str, traced: &Path) -> String {
    format!(
        "LD_DEBUG=libs LD_DEBUG_OUTPUT='{}' /usr/bin/python3 -c 'import plyvel; db = plyvel.DB(\"fruit\", create_if_missing=True); {statement}'",
        traced.display()
    )
}

fn plyvel_is_installed() -> bool {
    let found = Command::new("/usr/bin/python3").args(["-c", "import plyvel"]).output();
    found.is_ok_and(|output| output.status.success())
}

#[test]
fn a_path_swaps_the_library_under_an_installed_program_and_back() {
    let Some(libraries) = libraries() else { return };
    if !plyvel_is_installed() {
        return skip("python3-plyvel is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    symlink(&libraries.ours, dir.path().join("out")).unwrap();
    let [build, swap, back] = shown("export LD_LIBRARY_PATH").try_into().expect("three lines");
    assert_eq!(build, "make dropin", "what `libraries` has done");
    let (ours, theirs) = (dir.path().join("ours"), dir.path().join("theirs"));
    let script = [
        "set -e".to_owned(),
        swap,
        plyvel("db.put(b\"cherry\", b\"dark\")", &ours),
        back,
        plyvel("print(db.get(b\"cherry\").decode())", &theirs),
    ];
    let mut shell = Command::new("sh");
    shell.args(["-c", &script.join("\n")]).current_dir(dir.path()).env_remove("LD_LIBRARY_PATH");
    assert_eq!(String::from_utf8(succeeded(shell).stdout).unwrap(), "dark\n");
    assert_eq!(library_used(&ours), Some(libraries.swapped()));
    assert_eq!(library_used(&theirs).as_ref(), Some(&libraries.debian));
}

/// In a mount namespace of its own, with copies of `/etc` and of what is in `/usr/local`, nothing
/// outside changes.
#[test]
fn an_install_swaps_the_library_under_every_program_and_back() {
    let Some(libraries) = libraries() else { return };
    if !plyvel_is_installed() {
        return skip("python3-plyvel is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    let private = |command: &mut Command| {
        command.args(["--mount", "--propagation", "private", "sh", "-c"]);
    };
    let mut probe = Command::new("unshare");
    private(&mut probe);
    probe.arg("mount --bind \"$0\" /usr/local/lib").arg(dir.path());
    if !probe.output().is_ok_and(|output| output.status.success()) {
        return skip_for_rights("mount namespaces need root");
    }
    let [swap, back] = shown("ldconfig").try_into().expect("two lines");
    let (ours, theirs) = (dir.path().join("ours"), dir.path().join("theirs"));
    let quiet = |line: &str| {
        line.replace("make dropin && ", "")
            .replace("sudo ", "")
            .replace("make ", &format!("make -s -C '{ROOT}' "))
    };
    let script = [
        "set -e".to_owned(),
        "mkdir lib include; cp -a /etc etc".to_owned(),
        "mount --bind lib /usr/local/lib; mount --bind include /usr/local/include; mount --bind etc /etc".to_owned(),
        quiet(&swap),
        plyvel("db.put(b\"cherry\", b\"dark\")", &ours),
        quiet(&back),
        plyvel("print(db.get(b\"cherry\").decode())", &theirs),
    ];
    let mut shell = Command::new("unshare");
    private(&mut shell);
    shell.arg(script.join("\n")).current_dir(dir.path()).env_remove("LD_LIBRARY_PATH");
    libraries.build_environment(&mut shell);
    for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
        shell.env_remove(variable);
    }
    let (status, output) = outcome(&mut shell);
    assert!(status.success() && output.starts_with("dark\n"), "{status}\n{output}");
    assert_eq!(library_used(&ours), Some("/usr/local/lib/libleveldb.so.1d".into()));
    assert_eq!(library_used(&theirs).as_ref(), Some(&libraries.debian));
}
