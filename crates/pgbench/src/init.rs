//! `pgbench -i`: the tables of the standard scenario, created and filled.

mod fill;
mod tables;

use std::time::Instant;

use crate::console::Console;
use crate::interrupt::{Interrupt, OnSignal};
use crate::message::Fatal;
use crate::server::Server;
use crate::task::Initialization;

/// Performs the steps in order, and prints the time of each.
pub(crate) fn initialize(
    task: &Initialization,
    console: &Console,
    on_signal: &OnSignal<'_>,
) -> Result<(), Fatal> {
    let mut server = Server::connect(&task.connection, console)
        .map_err(|failure| Fatal::new(failure).error("could not create connection for initialization"))?;
    let interrupt = Interrupt::new(on_signal, server.cancel())?;
    let mut took = Vec::new();
    let mut total_s = 0.0;
    for step in task.steps.chars() {
        let start = Instant::now();
        let Some(done) = perform(task, step, &mut server, console, &interrupt)? else { continue };
        let elapsed_s = start.elapsed().as_secs_f64();
        total_s += elapsed_s;
        took.push(format!("{done} {elapsed_s:.2} s"));
    }
    console.plain(&format!("done in {total_s:.2} s ({}).\n", took.join(", ")));
    Ok(())
}

/// Performs a step and returns its name; None for a space.
fn perform(
    task: &Initialization,
    step: char,
    server: &mut Server,
    console: &Console,
    interrupt: &Interrupt,
) -> Result<Option<&'static str>, Fatal> {
    Ok(Some(match step {
        'd' => {
            console.plain("dropping old tables...\n");
            server.execute(&format!("drop table if exists {}", tables::ALL))?;
            "drop tables"
        }
        't' => {
            console.plain("creating tables...\n");
            execute_all(server, tables::create(task))?;
            if let Some((_, count)) = task.partitions {
                console.plain(&format!("creating {count} partitions...\n"));
                execute_all(server, tables::create_partitions(task))?;
            }
            "create tables"
        }
        'g' => {
            console.plain("generating data (client-side)...\n");
            server.execute("begin")?;
            server.execute(&truncate())?;
            fill::generate_on_client(task, server, console, interrupt)?;
            server.execute("commit")?;
            "client-side generate"
        }
        'G' => {
            console.plain("generating data (server-side)...\n");
            server.execute("begin")?;
            server.execute(&truncate())?;
            execute_all(server, fill::server_side_statements(task.scale))?;
            server.execute("commit")?;
            "server-side generate"
        }
        'v' => {
            console.plain("vacuuming...\n");
            for table in tables::VACUUMED {
                server.execute(&format!("vacuum analyze {table}"))?;
            }
            "vacuum"
        }
        'p' => {
            console.plain("creating primary keys...\n");
            execute_all(server, tables::add_primary_keys(task.index_tablespace.as_deref()))?;
            "primary keys"
        }
        'f' => {
            console.plain("creating foreign keys...\n");
            execute_all(server, tables::add_foreign_keys())?;
            "foreign keys"
        }
        _ => return Ok(None),
    }))
}

/// One statement for all tables, because of foreign keys between them.
fn truncate() -> String {
    format!("truncate table {}", tables::ALL)
}

fn execute_all(server: &mut Server, statements: impl IntoIterator<Item = String>) -> Result<(), Fatal> {
    statements.into_iter().try_for_each(|statement| server.execute(&statement))
}
