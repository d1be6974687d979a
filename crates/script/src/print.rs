//! Printing of expressions.

use std::fmt;

use crate::expr::{Binary, Expr, Extremum, Ternary, Unary};
use crate::{Names, Value};

impl Expr {
    /// The expression in pgbench's language, fully parenthesised; `names` are those it was parsed with. Parsing it
    /// gives the same expression again.
    pub fn display<'a>(&'a self, names: &'a Names) -> impl fmt::Display + 'a {
        Printed { expr: self, names }
    }
}

struct Printed<'a> {
    expr: &'a Expr,
    names: &'a Names,
}

impl Printed<'_> {
    fn child<'b>(&'b self, expr: &'b Expr) -> Printed<'b> {
        Printed { expr, names: self.names }
    }

    fn call(&self, out: &mut fmt::Formatter<'_>, name: &str, arguments: &[Expr]) -> fmt::Result {
        write!(out, "{name}(")?;
        for (index, argument) in arguments.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(out, "{comma}{}", self.child(argument))?;
        }
        write!(out, ")")
    }

    fn infix(&self, out: &mut fmt::Formatter<'_>, operator: &str, sides: &[Expr; 2]) -> fmt::Result {
        write!(out, "({} {operator} {})", self.child(&sides[0]), self.child(&sides[1]))
    }
}

impl fmt::Display for Printed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expr {
            Expr::Constant(value) => constant(out, *value),
            Expr::Variable(slot) => write!(out, ":{}", self.names.name(*slot)),
            Expr::Unary(Unary::Not, operand) => write!(out, "(not {})", self.child(operand)),
            Expr::Unary(function, argument) => {
                self.call(out, unary_name(*function), std::slice::from_ref(argument.as_ref()))
            }
            Expr::Binary(Binary::BitXor, sides) if sides[0] == Expr::Constant(Value::Int(-1)) => {
                write!(out, "(~ {})", self.child(&sides[1]))
            }
            Expr::Binary(function, sides) => match binary_name(*function) {
                Notation::Infix(operator) => self.infix(out, operator, sides),
                Notation::Call(name) => self.call(out, name, sides.as_slice()),
            },
            Expr::Ternary(function, arguments) => {
                self.call(out, ternary_name(*function), arguments.as_slice())
            }
            Expr::Extremum(Extremum::Least, arguments) => self.call(out, "least", arguments),
            Expr::Extremum(Extremum::Greatest, arguments) => self.call(out, "greatest", arguments),
            Expr::And(sides) => self.infix(out, "and", sides),
            Expr::Or(sides) => self.infix(out, "or", sides),
            Expr::Case { arms, otherwise } => {
                write!(out, "case")?;
                for (condition, value) in arms {
                    write!(out, " when {} then {}", self.child(condition), self.child(value))?;
                }
                write!(out, " else {} end", self.child(otherwise))
            }
        }
    }
}

fn constant(out: &mut fmt::Formatter<'_>, value: Value) -> fmt::Result {
    match value {
        Value::Null => write!(out, "null"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Int(value) => write!(out, "{value}"),
        // As many digits as distinguish it from its neighbours, and a point or an exponent that makes it a double.
        Value::Double(value) => write!(out, "{value:?}"),
    }
}

enum Notation {
    Infix(&'static str),
    Call(&'static str),
}

fn binary_name(function: Binary) -> Notation {
    match function {
        Binary::Add => Notation::Infix("+"),
        Binary::Subtract => Notation::Infix("-"),
        Binary::Multiply => Notation::Infix("*"),
        Binary::Divide => Notation::Infix("/"),
        Binary::Modulo => Notation::Infix("%"),
        Binary::BitAnd => Notation::Infix("&"),
        Binary::BitOr => Notation::Infix("|"),
        Binary::BitXor => Notation::Infix("#"),
        Binary::ShiftLeft => Notation::Infix("<<"),
        Binary::ShiftRight => Notation::Infix(">>"),
        Binary::Equal => Notation::Infix("="),
        Binary::NotEqual => Notation::Infix("<>"),
        Binary::Less => Notation::Infix("<"),
        Binary::LessOrEqual => Notation::Infix("<="),
        Binary::Is => Notation::Infix("is"),
        Binary::Power => Notation::Call("power"),
        Binary::HashFnv1a => Notation::Call("hash_fnv1a"),
        Binary::HashMurmur2 => Notation::Call("hash_murmur2"),
        Binary::Random => Notation::Call("random"),
    }
}

fn unary_name(function: Unary) -> &'static str {
    match function {
        Unary::Not => "not",
        Unary::Abs => "abs",
        Unary::Debug => "debug",
        Unary::Double => "double",
        Unary::Exp => "exp",
        Unary::Int => "int",
        Unary::Ln => "ln",
        Unary::Sqrt => "sqrt",
    }
}

fn ternary_name(function: Ternary) -> &'static str {
    match function {
        Ternary::Permute => "permute",
        Ternary::RandomExponential => "random_exponential",
        Ternary::RandomGaussian => "random_gaussian",
        Ternary::RandomZipfian => "random_zipfian",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Slot;
    use crate::parse::parse_expression;
    use crate::source::Source;

    const VARIABLES: [&str; 3] = ["a", "x1", "größe"];

    fn names() -> Names {
        let mut names = Names::default();
        for name in VARIABLES {
            names.slot(name).unwrap();
        }
        names
    }

    fn parse(text: &str) -> Expr {
        parse_expression(Source { name: "test", text }, "set", 0, &mut names())
            .unwrap_or_else(|e| panic!("{e}"))
            .0
    }

    fn print(expr: &Expr) -> String {
        expr.display(&names()).to_string()
    }

    #[test]
    fn precedence_is_kept() {
        for (text, printed) in [
            ("1 + 2 * -:a", "(1 + (2 * (0 - :a)))"),
            ("not :a = 1 and true or false", "(((not (:a = 1)) and true) or false)"),
            ("~ :a + 1 | 2", "((~ (:a + 1)) | 2)"),
            ("1 < 2 is not null", "(not ((1 < 2) is null))"),
            ("1 >= 2", "(2 <= 1)"),
            ("1 is null = 2", "((1 is null) = 2)"),
            ("1 * not 2 = 3", "(1 * (not (2 = 3)))"),
            ("- ~ 1 = 2", "((0 - (~ 1)) = 2)"),
            ("8 | 1 # 3 & 2 << 1", "((((8 | 1) # 3) & 2) << 1)"),
            ("pow(2, 1e3) - 9", "(power(2, 1000.0) - 9)"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("CASE WHEN :x1 ISNULL THEN 1 END", "case when (:x1 is null) then 1 else null end"),
        ] {
            assert_eq!(print(&parse(text)), printed, "{text}");
        }
    }

    fn leaf() -> impl Strategy<Value = Expr> {
        let value = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            (0..=i64::MAX).prop_map(Value::Int),
            Just(Value::Int(i64::MIN)),
            any::<f64>().prop_filter_map("constants are normal", |value| {
                let value = value.abs();
                (value.is_normal() || value == 0.0).then_some(Value::Double(value))
            }),
        ];
        prop_oneof![value.prop_map(Expr::Constant), (0..3_u16).prop_map(|slot| Expr::Variable(Slot(slot)))]
    }

    const UNARY: [Unary; 8] =
        [Unary::Not, Unary::Abs, Unary::Debug, Unary::Double, Unary::Exp, Unary::Int, Unary::Ln, Unary::Sqrt];
    const BINARY: [Binary; 18] = [
        Binary::Add,
        Binary::Subtract,
        Binary::Multiply,
        Binary::Divide,
        Binary::Modulo,
        Binary::BitAnd,
        Binary::BitOr,
        Binary::BitXor,
        Binary::ShiftLeft,
        Binary::ShiftRight,
        Binary::Equal,
        Binary::NotEqual,
        Binary::Less,
        Binary::LessOrEqual,
        Binary::Power,
        Binary::HashFnv1a,
        Binary::HashMurmur2,
        Binary::Random,
    ];
    const TERNARY: [Ternary; 4] =
        [Ternary::Permute, Ternary::RandomExponential, Ternary::RandomGaussian, Ternary::RandomZipfian];

    fn expression() -> impl Strategy<Value = Expr> {
        leaf().prop_recursive(6, 64, 4, |inner| {
            let pair = || [inner.clone(), inner.clone()].prop_map(Box::new);
            let three = [inner.clone(), inner.clone(), inner.clone()].prop_map(Box::new);
            prop_oneof![
                (prop::sample::select(&UNARY[..]), inner.clone())
                    .prop_map(|(f, a)| Expr::Unary(f, Box::new(a))),
                (prop::sample::select(&BINARY[..]), pair()).prop_map(|(f, ab)| Expr::Binary(f, ab)),
                inner
                    .clone()
                    .prop_map(|a| Expr::Binary(Binary::Is, Box::new([a, Expr::Constant(Value::Null)]))),
                inner.clone().prop_map(|a| Expr::Binary(
                    Binary::BitXor,
                    Box::new([Expr::Constant(Value::Int(-1)), a])
                )),
                (prop::sample::select(&TERNARY[..]), three).prop_map(|(f, abc)| Expr::Ternary(f, abc)),
                (any::<bool>(), prop::collection::vec(inner.clone(), 1..4)).prop_map(|(least, list)| {
                    Expr::Extremum(if least { Extremum::Least } else { Extremum::Greatest }, list.into())
                }),
                pair().prop_map(Expr::And),
                pair().prop_map(Expr::Or),
                (prop::collection::vec((inner.clone(), inner.clone()), 1..4), inner.clone()).prop_map(
                    |(arms, otherwise)| Expr::Case { arms: arms.into(), otherwise: Box::new(otherwise) }
                ),
            ]
        })
    }

    proptest! {
        #[test]
        fn printing_and_parsing_round_trip(expr in expression()) {
            prop_assert_eq!(parse(&print(&expr)), expr);
        }
    }
}
