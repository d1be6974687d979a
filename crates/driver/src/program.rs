//! A script made ready to be sent: everything that is the same for all clients and all transactions.

use model::message::Load;
use model::workload::Protocol;
use script::{Command, Expr, RandomState, Script, Seeds, Slot, Sql, Value, Variables};
use wire::encode::{self, Bind};

use crate::error::LoadError;

/// What clients run.
pub(crate) struct Program {
    /// Name of the script in replies.
    pub(crate) name: &'static str,
    pub(crate) steps: Vec<Step>,
    /// What has to be sent on each new connection, and is answered once; empty where nothing has to.
    pub(crate) preparation: Vec<u8>,
    variables: Variables,
    client_id: Option<Slot>,
}

/// One command of the script.
pub(crate) enum Step {
    /// Computes a variable.
    Set { line: u32, slot: Slot, expr: Expr },
    /// Sends a statement, which is answered once.
    Send(Statement),
}

/// A statement that knows how it is sent.
pub(crate) struct Statement {
    pub(crate) line: u32,
    form: Form,
}

enum Form {
    /// A Query message with the values in its text.
    Simple(Sql),
    /// Messages around a Bind with the values.
    Bound {
        /// Parse, where it has to be done each time.
        before: Vec<u8>,
        bind: Bind,
        params: Vec<Slot>,
        /// Describe, Execute and Sync.
        after: Vec<u8>,
    },
}

impl Program {
    /// The program of a load.
    pub(crate) fn new(load: &Load, default_seed: Option<i64>) -> Result<Self, LoadError> {
        let name = load.workload.name();
        let builtin = script::builtin(name)
            .ok_or_else(|| LoadError::Script(format!("there is no built-in script \"{name}\"")))?;
        let script =
            Script::parse(name, builtin.text).map_err(|error| LoadError::Script(error.to_string()))?;
        Self::of_script(name, &script, load, default_seed)
    }

    fn of_script(
        name: &'static str,
        script: &Script,
        load: &Load,
        default_seed: Option<i64>,
    ) -> Result<Self, LoadError> {
        if load.protocol != Protocol::Simple {
            script.check_params().map_err(|error| LoadError::Script(error.to_string()))?;
        }
        let mut preparation = Vec::new();
        let mut sends = false;
        let mut step = |(number, command): (usize, &Command)| match command {
            Command::Set { line, slot, expr } => Step::Set { line: *line, slot: *slot, expr: expr.clone() },
            Command::Sql(sql) => {
                sends = true;
                Step::Send(Statement::new(sql, number, load.protocol, &mut preparation))
            }
        };
        let steps = script.commands().iter().enumerate().map(&mut step).collect();
        if !sends {
            return Err(LoadError::Script(format!("{name} has no SQL command")));
        }
        if !preparation.is_empty() {
            encode::sync(&mut preparation);
        }
        let mut variables = Variables::for_script(script);
        let known = [
            ("scale", Some(i64::from(load.scale))),
            ("random_seed", Some(load.seed as i64)),
            ("default_seed", default_seed),
        ];
        for (variable, value) in known {
            if let (Some(slot), Some(value)) = (script.slot(variable), value) {
                variables.set(slot, Value::Int(value));
            }
        }
        Ok(Self { name, steps, preparation, variables, client_id: script.slot("client_id") })
    }

    /// The variables with which a client begins.
    pub(crate) fn variables(&self, client: u32) -> Variables {
        let mut variables = self.variables.clone();
        if let Some(slot) = self.client_id {
            variables.set(slot, Value::Int(i64::from(client)));
        }
        variables
    }

    /// Commits that the server counts for a new connection: the start-up of its session, which is a transaction, and
    /// that of the preparation.
    pub(crate) fn commits_per_connection(&self) -> u64 {
        1 + u64::from(!self.preparation.is_empty())
    }
}

/// The random state of each client and the value of `:default_seed`, in the order in which pgbench draws them.
pub(crate) fn seeds(load: &Load) -> (Vec<RandomState>, Option<i64>) {
    let seeds = Seeds::draw(load.seed, load.clients as usize, load.threads as usize, false);
    (seeds.clients, seeds.default_seed)
}

impl Statement {
    /// The statement of the script's command `number`; what has to be sent once goes to `preparation`.
    fn new(sql: &Sql, number: usize, protocol: Protocol, preparation: &mut Vec<u8>) -> Self {
        let (statement_name, before) = match protocol {
            Protocol::Simple => return Self { line: sql.line(), form: Form::Simple(sql.clone()) },
            Protocol::Extended => {
                let mut before = Vec::new();
                encode::parse("", sql.parameterised(), &mut before);
                (String::new(), before)
            }
            Protocol::Prepared => {
                // pgbench's names: script and command.
                let name = format!("P0_{number}");
                encode::parse(&name, sql.parameterised(), preparation);
                (name, Vec::new())
            }
        };
        let params = sql.params().to_vec();
        let mut after = Vec::new();
        encode::describe_portal(&mut after);
        encode::execute(&mut after);
        encode::sync(&mut after);
        // `Script::check_params` has bounded their number.
        let bind = Bind::new(&statement_name, params.len() as u16);
        Self { line: sql.line(), form: Form::Bound { before, bind, params, after } }
    }

    /// Appends the messages that execute it.
    #[inline]
    pub(crate) fn write(&self, variables: &Variables, out: &mut Vec<u8>) {
        match &self.form {
            Form::Simple(sql) => encode::query(out, |out| variables.write_statement(sql, out)),
            Form::Bound { before, bind, params, after } => {
                out.extend_from_slice(before);
                // An undefined variable is null, as in pgbench.
                bind.write(params, out, |slot, out| variables.write_text(*slot, out).is_ok());
                out.extend_from_slice(after);
            }
        }
    }
}
