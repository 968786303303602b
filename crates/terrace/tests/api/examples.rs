//! The examples do what they say. Each asserts its own outcome.

#[path = "../../examples/bulk_load.rs"]
mod bulk_load;
#[path = "../../examples/queue.rs"]
mod queue;
#[path = "../../examples/sessions.rs"]
mod sessions;
#[path = "../../examples/time_series.rs"]
mod time_series;
#[path = "../../examples/tokio.rs"]
mod tokio_example;
#[path = "../../examples/transactions.rs"]
mod transactions;

#[test]
fn bulk_load_is_visible_at_its_end() {
    bulk_load::main().expect("it runs");
}

#[test]
fn queue_hands_out_each_message_once() {
    queue::main().expect("it runs");
}

#[test]
fn sessions_expire_and_logins_are_counted() {
    sessions::main().expect("it runs");
}

#[test]
fn time_series_finds_ranges_and_the_newest_value() {
    time_series::main().expect("it runs");
}

#[test]
fn tokio_tasks_share_a_database() {
    tokio_example::main().expect("it runs");
}

#[test]
fn transactions_keep_the_sum() {
    transactions::main().expect("it runs");
}
