//! Many runs of one test, each decided by a seed: counted, and repeatable one by one.

use std::any::Any;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::rng::mix;

static PANICS: AtomicU64 = AtomicU64::new(0);

/// The message of panics on purpose, which are not counted.
const ON_PURPOSE: &str = "made to panic";

/// How many panics there were in background threads of this process since the first call, caught or
/// not. Those on purpose, whose message is "made to panic", do not count: another test of the
/// program may have asked for them.
pub fn panics() -> u64 {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_background =
                thread::current().name().is_some_and(|name| name.starts_with("terrace"));
            let message = info.payload().downcast_ref::<&str>();
            if is_background && message != Some(&ON_PURPOSE) {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            previous(info);
        }));
    });
    PANICS.load(Ordering::SeqCst)
}

/// The seed that `TERRACE_SEED` asks for.
///
/// # Panics
/// If it is not a number.
pub fn chosen_seed() -> Option<u64> {
    let text = env::var("TERRACE_SEED").ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("TERRACE_SEED is {text:?}, must be a number")))
}

/// The number of the first run: `TERRACE_FIRST_RUN`, so that a soak goes on where its last round
/// ended and continuous integration tries other seeds for every commit.
///
/// # Panics
/// If it is not a number.
pub fn first_run() -> u64 {
    let Ok(text) = env::var("TERRACE_FIRST_RUN") else { return 0 };
    text.parse().unwrap_or_else(|_| panic!("TERRACE_FIRST_RUN is {text:?}, must be a number"))
}

/// The seed of a test that has one for all its cases: the one that `TERRACE_SEED` names, or that of
/// the first run.
///
/// # Panics
/// If one of the variables is not a number.
pub fn seed() -> u64 {
    chosen_seed().unwrap_or_else(|| seed_of(first_run()))
}

/// Small seeds are easier to type than to tell apart: `mix` in the generators takes care of that.
fn seed_of(run: u64) -> u64 {
    mix(run) % 1_000_000_007
}

/// Does `run` with `count` seeds, or with the one that `TERRACE_SEED` names.
///
/// # Panics
/// At the first run that fails or panics, naming its seed; and if a background thread panicked
/// meanwhile.
pub fn campaign(name: &str, count: u64, mut run: impl FnMut(u64) -> Result<(), String>) {
    let chosen = chosen_seed();
    let count = if chosen.is_some() { 1 } else { count };
    let before = panics();
    let first = first_run();
    for number in first..first + count {
        let seed = chosen.unwrap_or_else(|| seed_of(number));
        let outcome = catch_unwind(AssertUnwindSafe(|| run(seed)))
            .unwrap_or_else(|panic| Err(panic_text(&*panic)));
        if let Err(message) = outcome {
            panic!(
                "{name}: run {number}: {message}\n  repeat with: TERRACE_SEED={seed} and this \
                 test's name"
            );
        }
        assert_eq!(
            panics(),
            before,
            "{name}: a background thread panicked; repeat with: TERRACE_SEED={seed}"
        );
    }
    println!("{name}: {count} runs, seeds of the numbers from {first} on");
}

/// The message of a caught panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.unwrap_or_default())
}
