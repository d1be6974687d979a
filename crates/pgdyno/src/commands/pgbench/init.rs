//! `pgbench -i`: the tables of the standard scenario, created and filled.

mod fill;
mod tables;

use std::time::Instant;

use super::compat::Compat;
use super::interrupt::Interrupt;
use super::message::{self, Fatal};
use super::server::Server;
use super::task::Initialization;

/// Does the steps in order, and says what each took.
pub(super) fn initialize(task: &Initialization) -> Result<(), Fatal> {
    let mut server = Server::connect(&task.connection)
        .map_err(|failure| Fatal::new(failure).error("could not create connection for initialization"))?;
    let interrupt = Interrupt::has(server.cancel())?;
    let mut took = Vec::new();
    let mut total_s = 0.0;
    for step in task.steps.chars() {
        let start = Instant::now();
        let Some(done) = perform(task, step, &mut server, &interrupt)? else { continue };
        let elapsed_s = start.elapsed().as_secs_f64();
        total_s += elapsed_s;
        took.push(format!("{done} {elapsed_s:.2} s"));
    }
    message::plain(&format!("done in {total_s:.2} s ({}).\n", took.join(", ")));
    Ok(())
}

/// Does a step and names it; none for what stands for no step.
fn perform(
    task: &Initialization,
    step: char,
    server: &mut Server,
    interrupt: &Interrupt,
) -> Result<Option<&'static str>, Fatal> {
    Ok(Some(match step {
        'd' => {
            message::plain("dropping old tables...\n");
            server.execute(&format!("drop table if exists {}", tables::ALL))?;
            "drop tables"
        }
        't' => {
            message::plain("creating tables...\n");
            execute_all(server, tables::create(task))?;
            if let Some((_, count)) = task.partitions {
                message::plain(&format!("creating {count} partitions...\n"));
                execute_all(server, tables::create_partitions(task))?;
            }
            "create tables"
        }
        'g' => {
            message::plain("generating data (client-side)...\n");
            server.execute("begin")?;
            server.execute(&truncate())?;
            fill::from_here(task, server, interrupt)?;
            server.execute("commit")?;
            "client-side generate"
        }
        'G' => {
            message::plain("generating data (server-side)...\n");
            server.execute("begin")?;
            server.execute(&truncate())?;
            execute_all(server, fill::in_the_server(task.scale))?;
            server.execute("commit")?;
            "server-side generate"
        }
        'v' => {
            message::plain("vacuuming...\n");
            for table in tables::VACUUMED {
                server.execute(&format!("vacuum analyze {table}"))?;
            }
            "vacuum"
        }
        'p' => {
            message::plain("creating primary keys...\n");
            execute_all(server, tables::add_primary_keys(task.index_tablespace.as_deref()))?;
            "primary keys"
        }
        'f' => {
            message::plain("creating foreign keys...\n");
            execute_all(server, tables::add_foreign_keys())?;
            "foreign keys"
        }
        _ => return Ok(None),
    }))
}

/// In one statement, so that foreign keys between the tables are no hindrance.
fn truncate() -> String {
    format!("truncate table {}", tables::ALL)
}

fn execute_all(server: &mut Server, statements: impl IntoIterator<Item = String>) -> Result<(), Fatal> {
    statements.into_iter().try_for_each(|statement| server.execute(&statement))
}

impl Compat {
    /// Whether branches and tellers are loaded by COPY as accounts are.
    fn copies_every_table(self) -> bool {
        self > Self::V15
    }
}
