//! What the parameters of a statement stand for: which column each is compared with or put into.

use std::collections::BTreeMap;

use pg_query::protobuf::AExprKind as Kind;
use serde_json::Value;

use crate::tree::{MAX_DEPTH, column, inner, last_name, list};

/// Functions whose first argument is a part of a time.
const TIME_FUNCTIONS: [&str; 3] = ["date_part", "date_trunc", "extract"];

/// A relation as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RelationName {
    pub(super) schema: Option<String>,
    pub(super) name: String,
}

/// A column as a statement names it: by its name or, in an INSERT without names, by its number from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ColumnName {
    Name(String),
    Number(usize),
}

/// What is done to a column before it is compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Applied {
    Nothing,
    /// A function of one argument, such as `lower`.
    Function(String),
    /// A cast, such as `::date`.
    Cast(String),
}

/// What a parameter stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Use {
    Column(ColumnUse),
    /// Number of rows: of LIMIT.
    Limit,
    /// Of OFFSET.
    Offset,
    /// A part of a time, of `date_trunc` and the like.
    TimeField,
    /// Something else.
    Other,
}

/// A column that a parameter is compared with or put into.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ColumnUse {
    /// The relations that may have it, with their names in the statement, the nearest first.
    pub(super) relations: Vec<(RelationName, String)>,
    pub(super) column: ColumnName,
    pub(super) applied: Applied,
    pub(super) role: Role,
    /// Parameters with the same number are of the same row of the relation.
    pub(super) row: usize,
}

/// How a parameter is used with its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Equal to it, or compared otherwise.
    Compared,
    /// A lower limit.
    Low,
    /// An upper limit.
    High,
    /// A pattern.
    Like,
    /// A value of a new row.
    Inserted,
    /// A new value of a row.
    Updated,
}

/// What the parameters of a statement stand for, and what kind of statement it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Uses {
    /// By number, from 1.
    parameters: BTreeMap<usize, Use>,
    /// Whether it inserts for rows that exist, too.
    pub(super) has_on_conflict: bool,
    /// Whether it deletes.
    pub(super) is_delete: bool,
    /// Rows that were numbered.
    rows: usize,
}

impl Uses {
    /// Those of a parse tree.
    pub(super) fn new(tree: &Value) -> Self {
        let mut uses = Self::default();
        uses.walk(tree, &[], 0);
        uses
    }

    /// What the parameter of this number, from 1, stands for.
    pub(super) fn of(&self, number: usize) -> &Use {
        self.parameters.get(&number).unwrap_or(&Use::Other)
    }

    fn walk(&mut self, tree: &Value, scope: &[Relation], depth: u32) {
        if depth > MAX_DEPTH {
            return;
        }
        match tree {
            Value::Array(all) => all.iter().for_each(|one| self.walk(one, scope, depth + 1)),
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.node(name, field, scope, depth);
                }
            }
            _ => {}
        }
    }

    /// A node of this name, and what is below it.
    fn node(&mut self, name: &str, field: &Value, scope: &[Relation], depth: u32) {
        let mut own = Vec::new();
        match name {
            "SelectStmt" | "larg" | "rarg" => {
                relations(&field["from_clause"], &mut own, 0);
                for (name, usage) in [("limit_count", Use::Limit), ("limit_offset", Use::Offset)] {
                    if let Some(number) = parameter(&field[name]) {
                        self.set(number, usage);
                    }
                }
            }
            "InsertStmt" => {
                own.extend(Relation::of(&field["relation"]));
                self.insert(field, &own);
            }
            "UpdateStmt" => {
                own.extend(Relation::of(&field["relation"]));
                relations(&field["from_clause"], &mut own, 0);
                self.update(&field["target_list"], &own);
            }
            "DeleteStmt" => {
                self.is_delete = true;
                own.extend(Relation::of(&field["relation"]));
                relations(&field["using_clause"], &mut own, 0);
            }
            "MergeStmt" => {
                own.extend(Relation::of(&field["relation"]));
                relations(&field["source_relation"], &mut own, 0);
            }
            "AExpr" => self.comparison(field, scope),
            "FuncCall" => {
                let name = last_name(&field["funcname"]).unwrap_or_default();
                let first = list(&field["args"]).first();
                if let Some(number) = first.and_then(parameter)
                    && TIME_FUNCTIONS.contains(&name)
                {
                    self.set(number, Use::TimeField);
                }
            }
            _ => {}
        }
        if own.is_empty() {
            self.walk(field, scope, depth + 1);
        } else {
            // Relations of the statements around it are visible, too.
            own.extend_from_slice(scope);
            self.walk(field, &own, depth + 1);
        }
    }

    fn set(&mut self, number: usize, usage: Use) {
        self.parameters.entry(number).or_insert(usage);
    }

    fn next_row(&mut self) -> usize {
        self.rows += 1;
        self.rows
    }

    fn insert(&mut self, statement: &Value, own: &[Relation]) {
        self.has_on_conflict |= !statement["on_conflict_clause"].is_null();
        let names: Vec<Option<String>> = list(&statement["cols"])
            .iter()
            .map(|column| Some(inner(column, "ResTarget")?["name"].as_str()?.to_owned()))
            .collect();
        let name = |number: usize| match names.get(number) {
            Some(Some(name)) => ColumnName::Name(name.clone()),
            _ => ColumnName::Number(number),
        };
        let Some(select) = inner(&statement["select_stmt"], "SelectStmt") else { return };
        let values: Vec<Vec<&Value>> = list(&select["values_lists"])
            .iter()
            .map(|row| inner(row, "List").map_or(Vec::new(), |row| list(&row["items"]).iter().collect()))
            .collect();
        let selected: Vec<&Value> = list(&select["target_list"])
            .iter()
            .map(|target| inner(target, "ResTarget").map_or(&Value::Null, |target| &target["val"]))
            .collect();
        for row in values.iter().chain([&selected]) {
            let number = self.next_row();
            for (position, value) in row.iter().enumerate() {
                self.assign(value, own, name(position), Role::Inserted, number);
            }
        }
        self.update(&statement["on_conflict_clause"]["target_list"], own);
    }

    /// The list of an UPDATE: values of another row, so that they change something.
    fn update(&mut self, targets: &Value, own: &[Relation]) {
        let row = self.next_row();
        for target in list(targets).iter().filter_map(|target| inner(target, "ResTarget")) {
            let Some(name) = target["name"].as_str() else { continue };
            self.assign(&target["val"], own, ColumnName::Name(name.to_owned()), Role::Updated, row);
        }
    }

    fn assign(&mut self, value: &Value, own: &[Relation], column: ColumnName, role: Role, row: usize) {
        let (Some(number), Some(target)) = (parameter(value), own.first()) else { return };
        let relations = vec![(target.name.clone(), target.alias.clone())];
        let applied = Applied::Nothing;
        self.set(number, Use::Column(ColumnUse { relations, column, applied, role, row }));
    }

    fn comparison(&mut self, expression: &Value, scope: &[Relation]) {
        let kind = expression["kind"].as_i64().and_then(|kind| Kind::try_from(kind as i32).ok());
        let operator = last_name(&expression["name"]).unwrap_or_default();
        let (left, right) = (&expression["lexpr"], &expression["rexpr"]);
        match kind {
            Some(Kind::AexprOp) => self.pairs(left, operator, right, scope),
            Some(Kind::AexprOpAny | Kind::AexprOpAll | Kind::AexprDistinct | Kind::AexprNotDistinct) => {
                self.compare(left, right, Role::Compared, 0, scope);
                self.compare(right, left, Role::Compared, 0, scope);
            }
            Some(Kind::AexprIn) => {
                for item in inner(right, "List").map_or(&[][..], |right| list(&right["items"])) {
                    let row = self.next_row();
                    self.compare(left, item, Role::Compared, row, scope);
                }
            }
            Some(Kind::AexprLike | Kind::AexprIlike | Kind::AexprSimilar) => {
                self.compare(left, right, Role::Like, 0, scope);
            }
            Some(
                Kind::AexprBetween | Kind::AexprNotBetween | Kind::AexprBetweenSym | Kind::AexprNotBetweenSym,
            ) => {
                let limits = inner(right, "List").map_or(&[][..], |right| list(&right["items"]));
                for (limit, role) in limits.iter().zip([Role::Low, Role::High]) {
                    self.compare(left, limit, role, 0, scope);
                }
            }
            _ => {}
        }
    }

    /// `column = $1`, `$1 = column`, and the same of rows.
    fn pairs(&mut self, left: &Value, operator: &str, right: &Value, scope: &[Relation]) {
        if let (Some(one), Some(other)) = (inner(left, "RowExpr"), inner(right, "RowExpr")) {
            for (left, right) in list(&one["args"]).iter().zip(list(&other["args"])) {
                self.pairs(left, operator, right, scope);
            }
            return;
        }
        let (role, mirrored) = match operator {
            "<" | "<=" => (Role::High, Role::Low),
            ">" | ">=" => (Role::Low, Role::High),
            // The other operand of arithmetic with a column has nothing to do with its values.
            "+" | "-" | "*" | "/" | "%" | "||" | "->" | "->>" | "#>" | "#>>" => return,
            _ => (Role::Compared, Role::Compared),
        };
        self.compare(left, right, role, 0, scope);
        self.compare(right, left, mirrored, 0, scope);
    }

    fn compare(&mut self, one: &Value, value: &Value, role: Role, row: usize, scope: &[Relation]) {
        let (Some(number), Some((qualifier, name, applied))) = (parameter(value), operand(one, 0)) else {
            return;
        };
        let relations: Vec<(RelationName, String)> = scope
            .iter()
            .filter(|relation| qualifier.as_ref().is_none_or(|qualifier| relation.alias == *qualifier))
            .map(|relation| (relation.name.clone(), relation.alias.clone()))
            .collect();
        let column = ColumnName::Name(name);
        self.set(number, Use::Column(ColumnUse { relations, column, applied, role, row }));
    }
}

/// A relation that is visible, and its name there.
#[derive(Clone, Debug)]
struct Relation {
    name: RelationName,
    alias: String,
}

impl Relation {
    /// A `RangeVar`.
    fn of(range: &Value) -> Option<Self> {
        let name = range["relname"].as_str()?.to_owned();
        let schema = range["schemaname"].as_str().filter(|schema| !schema.is_empty()).map(str::to_owned);
        let alias = range["alias"]["aliasname"].as_str().unwrap_or(&name).to_owned();
        Some(Self { name: RelationName { schema, name }, alias })
    }
}

/// The relations of a FROM clause, of its joins, too.
fn relations(from: &Value, into: &mut Vec<Relation>, depth: u32) {
    if depth > MAX_DEPTH {
        return;
    }
    for item in from.as_array().map_or(std::slice::from_ref(from), Vec::as_slice) {
        if let Some(range) = inner(item, "RangeVar") {
            into.extend(Relation::of(range));
        } else if let Some(join) = inner(item, "JoinExpr") {
            relations(&join["larg"], into, depth + 1);
            relations(&join["rarg"], into, depth + 1);
        }
    }
}

/// The parameter that an expression is, casts and functions of one argument apart.
fn parameter(tree: &Value) -> Option<usize> {
    let mut tree = tree;
    for _ in 0..MAX_DEPTH {
        if let Some(parameter) = inner(tree, "ParamRef") {
            return usize::try_from(parameter["number"].as_i64()?).ok().filter(|number| *number > 0);
        }
        tree = match (inner(tree, "TypeCast"), inner(tree, "FuncCall")) {
            (Some(cast), _) => &cast["arg"],
            (None, Some(call)) => only(&call["args"])?,
            _ => return None,
        };
    }
    None
}

/// The column that an expression is: its qualifier, its name, and what is applied to it.
fn operand(tree: &Value, depth: u32) -> Option<(Option<String>, String, Applied)> {
    if let Some((qualifier, name)) = column(tree) {
        return Some((qualifier, name, Applied::Nothing));
    }
    if depth > 0 {
        return None;
    }
    let (argument, applied) = match (inner(tree, "TypeCast"), inner(tree, "FuncCall")) {
        (Some(cast), _) => (&cast["arg"], Applied::Cast(last_name(&cast["type_name"]["names"])?.to_owned())),
        (None, Some(call)) => {
            (only(&call["args"])?, Applied::Function(last_name(&call["funcname"])?.to_owned()))
        }
        _ => return None,
    };
    let (qualifier, name, _) = operand(argument, depth + 1)?;
    Some((qualifier, name, applied))
}

/// The only element of a list.
fn only(field: &Value) -> Option<&Value> {
    match list(field) {
        [only] => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::parse;

    /// The parameters of a statement as `relation.column` with role and row.
    fn uses(statement: &str) -> Vec<String> {
        let uses = Uses::new(&parse(statement).unwrap());
        let count = crate::sql::parameters(statement);
        (1..=count)
            .map(|number| match uses.of(number) {
                Use::Column(usage) => {
                    let relations: Vec<String> = usage
                        .relations
                        .iter()
                        .map(|(relation, _)| match &relation.schema {
                            Some(schema) => format!("{schema}.{}", relation.name),
                            None => relation.name.clone(),
                        })
                        .collect();
                    let column = match &usage.column {
                        ColumnName::Name(name) => name.clone(),
                        ColumnName::Number(number) => format!("#{number}"),
                    };
                    let applied = match &usage.applied {
                        Applied::Nothing => String::new(),
                        Applied::Function(name) => format!(" {name}()"),
                        Applied::Cast(name) => format!(" ::{name}"),
                    };
                    format!("{}.{column}{applied} {:?} {}", relations.join("|"), usage.role, usage.row)
                }
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn parameters_belong_to_the_columns_that_they_are_compared_with() {
        for (statement, expected) in [
            ("select * from t where a = $1", &["t.a Compared 0"][..]),
            ("select * from s.t x where $1 < x.a limit $2 offset $3", &["s.t.a Low 0", "Limit", "Offset"]),
            (
                "select * from t join u on t.id = u.t_id and u.k >= $1 where b in ($2, $3) and t.c between $4 and $5",
                &["u.k Low 0", "t|u.b Compared 1", "t|u.b Compared 2", "t.c Low 0", "t.c High 0"],
            ),
            (
                "select * from t where exists (select 1 from u where u.x = t.x and y = $1) and x = $2",
                &["u|t.y Compared 0", "t.x Compared 0"],
            ),
            (
                "select $1, a + $2 from t where lower(b) = lower($3) and c::date = $4::date and d = any($5)",
                &["Other", "Other", "t.b lower() Compared 0", "t.c ::date Compared 0", "t.d Compared 0"],
            ),
            ("select date_trunc($1, a) from t group by 1", &["TimeField"]),
            ("select * from t where (a, b) > ($1, $2)", &["t.a Low 0", "t.b Low 0"]),
            ("select * from t where a like $1 and b ->> $2 = $3", &["t.a Like 0", "Other", "Other"]),
            (
                "select a from t where a = $1 union select b from u where b = $2",
                &["t.a Compared 0", "u.b Compared 0"],
            ),
            (
                "insert into t (a, b) values ($1, $2), ($3, now())",
                &["t.a Inserted 1", "t.b Inserted 1", "t.a Inserted 2"],
            ),
            ("insert into t values ($1, $2::text)", &["t.#0 Inserted 1", "t.#1 Inserted 1"]),
            ("insert into t (a) select $1 from u where k = $2", &["t.a Inserted 1", "u|t.k Compared 0"]),
            (
                "insert into t (a) values ($1) on conflict (a) do update set b = $2",
                &["t.a Inserted 1", "t.b Updated 3"],
            ),
            ("update t set a = $1, b = b + $2 where id = $3", &["t.a Updated 1", "Other", "t.id Compared 0"]),
            ("delete from t using u where t.id = u.id and u.k = $1", &["u.k Compared 0"]),
            (
                "with x as (select * from u where k = $1) select * from x where id = $2",
                &["u|x.k Compared 0", "x.id Compared 0"],
            ),
        ] {
            assert_eq!(uses(statement), expected, "{statement}");
        }
    }

    #[test]
    fn kinds_of_statements_are_known() {
        let of = |statement: &str| {
            let uses = Uses::new(&parse(statement).unwrap());
            (uses.has_on_conflict, uses.is_delete)
        };
        assert_eq!(of("insert into t values ($1)"), (false, false));
        assert_eq!(of("insert into t values ($1) on conflict do nothing"), (true, false));
        assert_eq!(of("delete from t where id = $1"), (false, true));
        assert_eq!(of("select $1"), (false, false));
    }
}
