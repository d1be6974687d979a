//! Compiled scripts: everything that is the same for all clients and all transactions.

use std::ops::Range;
use std::time::Duration;

use model::workload::Protocol;
use script::{CommandKind, Expr, Fetch, ShellWords, Sleep, Slot, Sql, Variables};
use wire::encode::{self, Bind};

use crate::arrivals::Arrivals;
use crate::error::LoadError;
use crate::load::{Group, Load, WeightedScript};
use crate::record::Shape;

/// The compiled scripts of a load, and its clients.
pub(crate) struct Program {
    /// Scripts of all groups, in order.
    pub(crate) scripts: Vec<CompiledScript>,
    pub(crate) groups: Vec<Clients>,
    pub(crate) protocol: Protocol,
    /// Number of statements of all scripts that can be prepared.
    pub(crate) statements: usize,
    /// Whether any script has a pipeline.
    pub(crate) pipelines: bool,
}

/// The clients of one group.
pub(crate) struct Clients {
    /// Their numbers in the whole load: those of this host's part.
    pub(crate) numbers: Range<u32>,
    /// Number of the group's first client in the whole load, which another host may run.
    first: u32,
    /// Numbers of their scripts.
    pub(crate) scripts: Range<usize>,
    /// Whether their server is not the load's.
    pub(crate) is_elsewhere: bool,
    /// Sum of the weights.
    pub(crate) total_weight: u64,
    pub(crate) arrivals: Arrivals,
    pub(crate) reconnect: bool,
    pub(crate) application_name: Option<String>,
    /// Transactions per client; `u64::MAX`: no limit.
    pub(crate) transactions: u64,
    pub(crate) spans: bool,
    start_ns: u64,
    stagger_ns: u64,
    variables: Variables,
    client_id: Option<Slot>,
}

/// A compiled script.
pub(crate) struct CompiledScript {
    /// Name in messages and replies.
    pub(crate) name: String,
    pub(crate) weight: u64,
    /// One per command, with the same numbers.
    pub(crate) steps: Vec<Step>,
}

/// One command of a script.
pub(crate) struct Step {
    /// Line at which it begins.
    pub(crate) line: u32,
    /// pgbench's name for it, in messages.
    pub(crate) name: &'static str,
    pub(crate) action: Action,
}

/// The action of a command.
pub(crate) enum Action {
    Set {
        slot: Slot,
        expr: Expr,
    },
    SetShell {
        slot: Slot,
        words: ShellWords,
    },
    Shell {
        words: ShellWords,
    },
    Sleep(Sleep),
    /// Continues with the next command if the condition holds, else with another.
    If {
        expr: Expr,
        otherwise: Target,
    },
    /// As `If` if jumped to; if reached from above, a branch has run, and the block is left.
    Elif {
        expr: Expr,
        otherwise: Target,
        after: usize,
    },
    /// If reached from above, a branch has run, and the block is left.
    Else {
        after: usize,
    },
    Endif,
    /// Statements from here to the pipeline's end are prepared before it begins.
    StartPipeline {
        statements: Vec<usize>,
    },
    SyncPipeline,
    EndPipeline,
    Send(Statement),
}

/// Jump target of a condition that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To a command, to be executed.
    Command(usize),
    /// To an `\elif`, to be evaluated.
    Condition(usize),
}

/// A statement in the form in which it is sent.
pub(crate) struct Statement {
    /// Use of its rows.
    pub(crate) fetch: Fetch,
    /// Its number among the statements of all scripts, if it is prepared.
    pub(crate) prepared: Option<usize>,
    form: Form,
    /// The text for `--debug`: the prepared statement's name or the text with `$1`.
    sql: String,
    name: String,
}

enum Form {
    /// A Query message with the values in its text.
    Simple(Sql),
    /// Messages around a Bind with the values.
    Bound {
        /// Parse.
        parse: Vec<u8>,
        bind: Bind,
        params: Vec<Slot>,
        /// Describe and Execute.
        execute: Vec<u8>,
    },
}

impl Program {
    /// Compiles the scripts of a load.
    pub(crate) fn new(load: &Load) -> Result<Self, LoadError> {
        let mut program = Self {
            scripts: Vec::new(),
            groups: Vec::new(),
            protocol: load.protocol,
            statements: 0,
            pipelines: false,
        };
        let mut first = 0;
        for group in load.groups() {
            let from = program.scripts.len();
            for script in &group.scripts {
                let compiled = program.compile(script)?;
                program.scripts.push(compiled);
            }
            let part = load.part.clients(group.clients);
            let numbers = first + part.start..first + part.end;
            program.groups.push(Clients::new(group, first, numbers, from..program.scripts.len()));
            first += group.clients;
        }
        Ok(program)
    }

    fn compile(
        &mut self,
        WeightedScript { script, weight }: &WeightedScript,
    ) -> Result<CompiledScript, LoadError> {
        if self.protocol != Protocol::Simple {
            script.check_params().map_err(|error| LoadError::Script(error.to_string()))?;
        }
        let mut steps = Vec::with_capacity(script.commands().len());
        for command in script.commands() {
            let action = match &command.kind {
                CommandKind::Set { slot, expr } => Action::Set { slot: *slot, expr: expr.clone() },
                CommandKind::SetShell { slot, words } => {
                    Action::SetShell { slot: *slot, words: words.clone() }
                }
                CommandKind::Shell { words } => Action::Shell { words: words.clone() },
                CommandKind::Sleep(sleep) => Action::Sleep(*sleep),
                // The targets are set below.
                CommandKind::If { expr } => Action::If { expr: expr.clone(), otherwise: Target::Command(0) },
                CommandKind::Elif { expr } => {
                    Action::Elif { expr: expr.clone(), otherwise: Target::Command(0), after: 0 }
                }
                CommandKind::Else => Action::Else { after: 0 },
                CommandKind::Endif => Action::Endif,
                CommandKind::StartPipeline => Action::StartPipeline { statements: Vec::new() },
                CommandKind::SyncPipeline => Action::SyncPipeline,
                CommandKind::EndPipeline => Action::EndPipeline,
                CommandKind::Sql(sql) => {
                    let number = self.statements;
                    self.statements += 1;
                    Action::Send(Statement::new(sql, number, self.protocol))
                }
            };
            steps.push(Step { line: command.line, name: command.name(), action });
        }
        self.pipelines |= steps.iter().any(|step| matches!(step.action, Action::StartPipeline { .. }));
        link_conditions(&mut steps);
        link_pipelines(&mut steps);
        Ok(CompiledScript { name: script.name().to_owned(), weight: *weight, steps })
    }

    /// The parts of each script's record.
    pub(crate) fn shapes(&self, load: &Load) -> Vec<Shape> {
        let commands = |script: &CompiledScript| if load.per_command { script.steps.len() } else { 0 };
        let shapes = |(number, group): (usize, &Clients)| {
            let service = group.arrivals.is_open();
            let is_open = service && number == 0;
            let scripts = &self.scripts[group.scripts.clone()];
            let is_main = number == 0;
            let shape = |script| Shape { is_main, commands: commands(script), service, is_open };
            scripts.iter().map(shape).collect::<Vec<_>>()
        };
        self.groups.iter().enumerate().flat_map(shapes).collect()
    }
}

impl Clients {
    fn new(group: &Group, first: u32, numbers: Range<u32>, scripts: Range<usize>) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            numbers,
            first,
            scripts,
            total_weight: group.scripts.iter().map(|script| script.weight).sum(),
            arrivals: group.arrivals.clone(),
            reconnect: group.reconnect,
            is_elsewhere: group.connection.is_some(),
            application_name: group.application_name.clone(),
            transactions: group.transactions.unwrap_or(u64::MAX),
            spans: group.spans,
            start_ns: ns(group.start),
            stagger_ns: ns(group.stagger),
            variables: group.variables.clone(),
            client_id: group.client_id,
        }
    }

    /// Initial variables of the client with this number.
    pub(crate) fn variables(&self, number: u32) -> Variables {
        let mut variables = self.variables.clone();
        if let Some(slot) = self.client_id {
            // A number always fits.
            let _ = variables.set(slot, script::Value::Int(i64::from(number - self.first)));
        }
        variables
    }

    /// Start of the client with this number, in nanoseconds after the load's start.
    pub(crate) fn begin_ns(&self, number: u32) -> u64 {
        let index = u64::from(number - self.first);
        self.start_ns.saturating_add(self.stagger_ns.saturating_mul(index))
    }

    /// Start of the group's first client on any host, from which on its transactions arrive.
    pub(crate) fn first_begin_ns(&self) -> u64 {
        self.begin_ns(self.first)
    }
}

/// Sets the targets of conditions. The script's parser has ensured that blocks are closed and in order.
fn link_conditions(steps: &mut [Step]) {
    // By depth, the commands of the open block: its \if, \elif and \else.
    let mut open: Vec<Vec<usize>> = Vec::new();
    for at in 0..steps.len() {
        match steps[at].action {
            Action::If { .. } => open.push(vec![at]),
            Action::Elif { .. } | Action::Else { .. } => {
                if let Some(block) = open.last_mut() {
                    block.push(at);
                }
            }
            Action::Endif => {
                let block = open.pop().unwrap_or_default();
                for (index, branch) in block.iter().enumerate() {
                    let next = block.get(index + 1).copied();
                    let target = match next.map(|next| (next, &steps[next].action)) {
                        Some((next, Action::Elif { .. })) => Target::Condition(next),
                        Some((next, _)) => Target::Command(next + 1),
                        None => Target::Command(at + 1),
                    };
                    match &mut steps[*branch].action {
                        Action::If { otherwise, .. } => *otherwise = target,
                        Action::Elif { otherwise, after, .. } => (*otherwise, *after) = (target, at + 1),
                        Action::Else { after } => *after = at + 1,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

/// Finds the statements of each pipeline: those up to the first `\endpipeline`.
fn link_pipelines(steps: &mut [Step]) {
    for at in 0..steps.len() {
        if !matches!(steps[at].action, Action::StartPipeline { .. }) {
            continue;
        }
        let rest = steps[at + 1..].iter().take_while(|step| !matches!(step.action, Action::EndPipeline));
        let is_prepared =
            |step: &Step| matches!(&step.action, Action::Send(statement) if statement.prepared.is_some());
        let found = rest.enumerate().filter(|(_, step)| is_prepared(step)).map(|(offset, _)| at + 1 + offset);
        let found = found.collect();
        if let Action::StartPipeline { statements } = &mut steps[at].action {
            *statements = found;
        }
    }
}

impl Statement {
    fn new(sql: &Sql, number: usize, protocol: Protocol) -> Self {
        let fetch = sql.fetch().clone();
        let prepared = (protocol == Protocol::Prepared).then_some(number);
        // pgbench's names, counted over all scripts.
        let name = prepared.map(|number| format!("P_{number}")).unwrap_or_default();
        if protocol == Protocol::Simple {
            return Self { fetch, prepared, form: Form::Simple(sql.clone()), sql: String::new(), name };
        }
        let mut parse = Vec::new();
        encode::parse(&name, sql.parameterised(), &mut parse);
        let params = sql.params().to_vec();
        let mut execute = Vec::new();
        encode::describe_portal(&mut execute);
        encode::execute(&mut execute);
        // `Script::check_params` has bounded their number.
        let bind = Bind::new(&name, params.len() as u16);
        let sql = sql.parameterised().to_owned();
        Self { fetch, prepared, form: Form::Bound { parse, bind, params, execute }, sql, name }
    }

    /// Appends the messages that execute it, without the Sync of the extended protocols; with `parse`, preceded by
    /// those that prepare it.
    #[inline]
    pub(crate) fn write(&self, variables: &Variables, parse: bool, out: &mut Vec<u8>) {
        match &self.form {
            Form::Simple(sql) => encode::query(out, |out| variables.write_statement(sql, out)),
            Form::Bound { parse: parse_message, bind, params, execute } => {
                if parse {
                    out.extend_from_slice(parse_message);
                }
                // An undefined variable is null, as in pgbench.
                bind.write(params, out, |slot, out| variables.write_text(*slot, out).is_ok());
                out.extend_from_slice(execute);
            }
        }
    }

    /// Appends the message that prepares it.
    pub(crate) fn write_parse(&self, out: &mut Vec<u8>) {
        if let Form::Bound { parse, .. } = &self.form {
            out.extend_from_slice(parse);
        }
    }

    /// Name of the prepared statement; empty if it is not prepared.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The text that pgbench reports as sent.
    pub(crate) fn debug_text(&self, variables: &Variables) -> String {
        match &self.form {
            Form::Simple(sql) => {
                let mut text = Vec::new();
                variables.write_statement(sql, &mut text);
                String::from_utf8_lossy(&text).into_owned()
            }
            Form::Bound { .. } if self.prepared.is_some() => self.name.clone(),
            Form::Bound { .. } => self.sql.clone(),
        }
    }
}

/// Commits that the server counts for a connection in addition to its transactions: that of its start-up.
pub(crate) const COMMITS_PER_CONNECTION: u64 = 1;

#[cfg(test)]
mod tests {
    use script::{Names, Script};

    use super::*;

    fn steps(text: &str) -> Vec<Step> {
        let script = Script::parse("test", text, &mut Names::default()).unwrap();
        let mut program = Program {
            scripts: Vec::new(),
            groups: Vec::new(),
            protocol: Protocol::Prepared,
            statements: 0,
            pipelines: false,
        };
        program.compile(&WeightedScript { script, weight: 1 }).unwrap().steps
    }

    /// Targets of each condition: otherwise, after.
    fn links(text: &str) -> Vec<(Option<Target>, Option<usize>)> {
        let link = |step: &Step| match &step.action {
            Action::If { otherwise, .. } => (Some(*otherwise), None),
            Action::Elif { otherwise, after, .. } => (Some(*otherwise), Some(*after)),
            Action::Else { after } => (None, Some(*after)),
            _ => (None, None),
        };
        steps(text).iter().map(link).collect()
    }

    #[test]
    fn a_condition_leads_to_the_next_branch_of_its_block() {
        let links = links(
            "\\if 0\n\\if 1\nselect 1;\n\\endif\n\\elif 0\nselect 2;\n\\else\nselect 3;\n\\endif\nselect 4;\n",
        );
        assert_eq!(links[0], (Some(Target::Condition(4)), None));
        assert_eq!(links[1], (Some(Target::Command(4)), None));
        assert_eq!(links[4], (Some(Target::Command(7)), Some(9)));
        assert_eq!(links[6], (None, Some(9)));
    }

    #[test]
    fn a_pipeline_knows_its_statements() {
        let steps = steps("\\startpipeline\nselect 1;\n\\set a 1\nselect 2;\n\\endpipeline\nselect 3;\n");
        assert!(matches!(&steps[0].action, Action::StartPipeline { statements } if statements == &[1, 3]));
    }
}
