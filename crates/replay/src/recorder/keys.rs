//! By which values a writing statement names rows: those that it inserts, and those that it compares columns with.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use trace::Shape;

use crate::sql;
use crate::tree::{self, MAX_DEPTH, column, inner};

/// Values of a statement that are looked at.
const MAX_VALUES: usize = 1_000;

/// How the statements with the same words name rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyPlan {
    pub(super) kind: TransactionStep,
    /// The writing parts of the statement.
    pub(super) writes: Vec<Write>,
    /// The relations that it names, hashed.
    pub(super) relations: Vec<u64>,
    /// Those that it creates.
    pub(super) creates: Vec<u64>,
    /// Whether it may change something or lock rows.
    pub(super) may_write: bool,
}

/// What a statement does to the transaction block of its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TransactionStep {
    #[default]
    None,
    Begin,
    Commit,
    /// `ROLLBACK`, and what ends a block otherwise.
    End,
    RollbackToSavepoint,
}

/// An INSERT, UPDATE, DELETE or SELECT … FOR UPDATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    /// The relation, hashed.
    pub(super) relation: u64,
    pub(super) inserts: bool,
    /// Values that are inserted into a column, or that it has to be equal to.
    pub(super) values: Vec<(Column, Slot)>,
    /// Whether all these together name rows: each column has one value.
    pub(super) names_rows: bool,
}

/// A column of a relation, hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Column(pub(super) u64);

/// Where a statement has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The literal of this number, in the order of the text.
    Literal(usize),
    /// The parameter of this number, from 0.
    Parameter(usize),
}

impl KeyPlan {
    /// The plan of a statement; that of nothing if it can't be parsed.
    pub(super) fn new(statement: &str) -> Self {
        let Some(tree) = tree::parse(statement) else {
            return Self { may_write: true, ..Self::default() };
        };
        let shape = Shape { fingerprint: 0, text: statement.to_owned(), is_parsed: true };
        let literals = sql::spans(statement).filter(|span| span.kind != sql::Kind::Comment);
        let mut reader =
            Reader { literals: literals.map(|span| span.outer.start).collect(), plan: Self::default() };
        reader.read(&tree, 0);
        let statements = tree["stmts"].as_array();
        let only = statements.filter(|all| all.len() == 1).and_then(|all| all.first());
        let transaction = only.and_then(|only| inner(&only["stmt"], "TransactionStmt"));
        let kind = transaction.map(step).unwrap_or_default();
        Self { kind, may_write: shape.writes(), ..reader.plan }
    }
}

/// What a `TransactionStmt` does.
fn step(transaction: &Value) -> TransactionStep {
    use pg_query::protobuf::TransactionStmtKind as Kind;
    let kind = transaction["kind"].as_i64().and_then(|kind| Kind::try_from(kind as i32).ok());
    match kind {
        Some(Kind::TransStmtBegin | Kind::TransStmtStart) => TransactionStep::Begin,
        Some(Kind::TransStmtCommit) => TransactionStep::Commit,
        Some(Kind::TransStmtRollback | Kind::TransStmtPrepare) => TransactionStep::End,
        Some(Kind::TransStmtRollbackTo) => TransactionStep::RollbackToSavepoint,
        _ => TransactionStep::None,
    }
}

/// Reads a parse tree.
struct Reader {
    /// Where the literals begin, in order.
    literals: Vec<usize>,
    plan: KeyPlan,
}

impl Reader {
    fn read(&mut self, tree: &Value, depth: u32) {
        if depth > MAX_DEPTH {
            return;
        }
        match tree {
            Value::Array(all) => all.iter().for_each(|one| self.read(one, depth + 1)),
            Value::Object(fields) => {
                for (name, field) in fields {
                    match name.as_str() {
                        "RangeVar" | "relation" => self.plan.relations.extend(relation(field)),
                        "CreateStmt" => self.plan.creates.extend(relation(&field["relation"])),
                        "CreateTableAsStmt" => {
                            self.plan.creates.extend(relation(&field["into"]["rel"]));
                        }
                        "ViewStmt" => self.plan.creates.extend(relation(&field["view"])),
                        "InsertStmt" => self.insert(field),
                        "UpdateStmt" | "DeleteStmt" => self.change(&field["relation"], field),
                        "SelectStmt"
                            if field["locking_clause"].as_array().is_some_and(|all| !all.is_empty()) =>
                        {
                            let from = field["from_clause"].as_array().map(Vec::as_slice);
                            if let Some([relation]) = from
                                && let Some(relation) = inner(relation, "RangeVar")
                            {
                                self.change(relation, field);
                            }
                        }
                        _ => {}
                    }
                    self.read(field, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn insert(&mut self, statement: &Value) {
        let Some(relation) = relation(&statement["relation"]) else { return };
        let name = |column: &Value| inner(column, "ResTarget")?["name"].as_str().map(str::to_owned);
        let columns: Vec<Option<String>> = statement["cols"]
            .as_array()
            .map(|columns| columns.iter().map(name).collect())
            .unwrap_or_default();
        let rows = inner(&statement["select_stmt"], "SelectStmt")
            .and_then(|select| select["values_lists"].as_array());
        let mut values = Vec::new();
        for row in rows.into_iter().flatten() {
            let items = inner(row, "List").and_then(|list| list["items"].as_array());
            for (number, item) in items.into_iter().flatten().enumerate() {
                let Some(slot) = self.slot(item, 0) else { continue };
                // Without a list of columns, by position.
                let column = match columns.get(number) {
                    Some(Some(name)) => hash(&(relation, name)),
                    _ => hash(&(relation, number)),
                };
                if values.len() < MAX_VALUES {
                    values.push((Column(column), slot));
                }
            }
        }
        self.plan.writes.push(Write { relation, inserts: true, values, names_rows: false });
    }

    /// An UPDATE, a DELETE, or rows that a SELECT locks.
    fn change(&mut self, target: &Value, statement: &Value) {
        let Some(relation) = relation(target) else { return };
        let own = [target["alias"]["aliasname"].as_str(), target["relname"].as_str()];
        let is_own = |qualifier: Option<&str>| qualifier.is_none() || own.contains(&qualifier);
        let mut comparisons = Vec::new();
        let mut names_rows = true;
        self.conjuncts(&statement["where_clause"], 0, &mut |reader, expression| match reader
            .equality(expression)
        {
            Some((qualifier, column, slots)) if is_own(qualifier.as_deref()) => {
                names_rows &= slots.len() == 1;
                let column = Column(hash(&(relation, &column)));
                comparisons.extend(slots.into_iter().map(|slot| (column, slot)));
            }
            _ => {}
        });
        comparisons.truncate(MAX_VALUES);
        names_rows &= !comparisons.is_empty();
        self.plan.writes.push(Write { relation, inserts: false, values: comparisons, names_rows });
    }

    /// Calls `on` for each condition of a conjunction.
    fn conjuncts(&self, tree: &Value, depth: u32, on: &mut dyn FnMut(&Self, &Value)) {
        if depth > MAX_DEPTH {
            return;
        }
        let conjunction = inner(tree, "BoolExpr")
            .filter(|all| all["boolop"].as_i64() == Some(pg_query::protobuf::BoolExprType::AndExpr as i64));
        match conjunction.and_then(|all| all["args"].as_array()) {
            Some(all) => all.iter().for_each(|one| self.conjuncts(one, depth + 1, on)),
            None => on(self, tree),
        }
    }

    /// `column = value` or `column IN (value, …)`: qualifier and name of the column, and the values.
    fn equality(&self, tree: &Value) -> Option<(Option<String>, String, Vec<Slot>)> {
        use pg_query::protobuf::AExprKind as Kind;
        let expression = inner(tree, "AExpr")?;
        let operator = expression["name"].as_array()?.last()?;
        if inner(operator, "String")?["sval"].as_str()? != "=" {
            return None;
        }
        let (left, right) = (&expression["lexpr"], &expression["rexpr"]);
        let kind = Kind::try_from(expression["kind"].as_i64()? as i32).ok()?;
        let ((qualifier, column), slots) = match kind {
            Kind::AexprOp => match (column(left), column(right)) {
                (Some(name), None) => (name, vec![self.slot(right, 0)?]),
                (None, Some(name)) => (name, vec![self.slot(left, 0)?]),
                _ => return None,
            },
            Kind::AexprIn => {
                let items = inner(right, "List")?["items"].as_array()?;
                (column(left)?, items.iter().filter_map(|item| self.slot(item, 0)).collect())
            }
            _ => return None,
        };
        Some((qualifier, column, slots))
    }

    /// The literal or parameter that an expression is, casts apart.
    fn slot(&self, tree: &Value, depth: u32) -> Option<Slot> {
        if let Some(constant) = inner(tree, "AConst") {
            let at = usize::try_from(constant["location"].as_i64()?).ok()?;
            let number = self.literals.partition_point(|start| *start < at);
            // The sign of a number is not in its literal; TRUE and FALSE are none.
            return self
                .literals
                .get(number)
                .is_some_and(|start| start - at <= 1)
                .then_some(Slot::Literal(number));
        }
        if let Some(parameter) = inner(tree, "ParamRef") {
            let number = usize::try_from(parameter["number"].as_i64()?).ok()?;
            return number.checked_sub(1).map(Slot::Parameter);
        }
        let cast = inner(tree, "TypeCast").filter(|_| depth < MAX_DEPTH)?;
        self.slot(&cast["arg"], depth + 1)
    }
}

/// A `RangeVar`, hashed without its schema, which statements leave out as they like.
fn relation(range: &Value) -> Option<u64> {
    range["relname"].as_str().map(|name| hash(&name))
}

pub(super) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The plans of statements, by the hash of their words.
#[derive(Default)]
pub(super) struct KeyPlans(HashMap<u64, KeyPlan>);

/// Plans that are remembered: more are made again.
const MAX_REMEMBERED: usize = 100_000;

impl KeyPlans {
    /// The plan of a statement with these words.
    pub(super) fn plan(&mut self, words: u64, statement: &str) -> &KeyPlan {
        if self.0.len() >= MAX_REMEMBERED && !self.0.contains_key(&words) {
            self.0.clear();
        }
        self.0.entry(words).or_insert_with(|| KeyPlan::new(statement))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(relation: &str, name: &str) -> Column {
        Column(hash(&(hash(&relation), name)))
    }

    fn plan(statement: &str) -> Vec<Write> {
        KeyPlan::new(statement).writes
    }

    #[test]
    fn rows_are_named_by_inserted_and_compared_values() {
        use Slot::{Literal, Parameter};
        let insert =
            plan("insert into shop.orders (id, customer, note) values (5, $1, 'x'), (-6, $2, now())");
        let [id, customer, note] = ["id", "customer", "note"].map(|name| column("orders", name));
        assert_eq!(
            insert,
            [Write {
                relation: hash(&"orders"),
                inserts: true,
                values: vec![
                    (id, Literal(0)),
                    (customer, Parameter(0)),
                    (note, Literal(1)),
                    (id, Literal(2)),
                    (customer, Parameter(1)),
                ],
                names_rows: false,
            }]
        );
        let update = plan(
            "update orders o set n = n + 1, note = 'y' where o.id = 5 and customer = '7'::int and n < 9 and true",
        );
        assert_eq!(update[0].values, [(id, Literal(2)), (customer, Literal(3))]);
        assert!(update[0].names_rows && !update[0].inserts);
        let delete = plan("delete from orders where id in (1, 2)");
        assert_eq!(
            (&*delete[0].values, delete[0].names_rows),
            (&[(id, Literal(0)), (id, Literal(1))][..], false)
        );
        let locked = plan("select * from orders where $1 = id for update");
        assert_eq!(locked[0].values, [(id, Parameter(0))]);
        let nested = plan("with gone as (delete from orders where id = 3 returning *) select * from gone");
        assert_eq!(nested[0].values, [(id, Literal(0))]);
        // Other relations' columns, alternatives and ranges name no rows.
        for statement in [
            "update orders set n = 1 from items i where i.id = 3",
            "update orders set n = 1 where id = 3 or id = 4",
            "update orders set n = 1 where id > 3",
            "delete from orders",
        ] {
            assert_eq!(plan(statement)[0].values, [], "{statement}");
        }
        let reading = KeyPlan::new("select * from orders o join shop.items i on i.id = o.id where o.id = 3");
        assert_eq!(
            (&*reading.writes, &*reading.relations),
            (&[][..], &["orders", "items"].map(|name| hash(&name))[..])
        );
        for create in ["create table a (id int)", "create table a as select 1", "create view a as select 1"] {
            assert_eq!(KeyPlan::new(create).creates, [hash(&"a")], "{create}");
        }
        assert_eq!(plan("select * from orders where id = 3"), []);
        assert_eq!(plan("selct"), []);
    }

    #[test]
    fn transactions_are_followed() {
        use TransactionStep::{Begin, Commit, End, None, RollbackToSavepoint};
        for (statement, expected) in [
            ("BEGIN", Begin),
            ("start transaction isolation level serializable", Begin),
            ("end", Commit),
            ("COMMIT AND CHAIN", Commit),
            ("abort", End),
            ("prepare transaction 'x'", End),
            ("rollback to a", RollbackToSavepoint),
            ("savepoint a", None),
            ("begin; select 1; commit", None),
            ("select 1", None),
        ] {
            assert_eq!(KeyPlan::new(statement).kind, expected, "{statement}");
        }
    }
}
