//! Parser of expressions, by precedence climbing (the grammar is pgbench's `exprparse.y`).

use crate::expr::{Binary, Expr, Unary};
use crate::functions::{DEFAULT_SEED, FUNCTIONS, Function};
use crate::lexer::{Keyword, Lexer, Operator, Spanned, Token};
use crate::names::Names;
use crate::source::{Diagnostic, Source};
use crate::{ScriptError, Slot, Value};

/// Parses the expression that begins at a byte offset and ends with its line. Returns it with the offset of the line's
/// end.
pub(crate) fn parse_expression(
    source: Source<'_>,
    command: &str,
    at: usize,
    names: &mut Names,
) -> Result<(Expr, usize), ScriptError> {
    let mut lexer = Lexer::new(source, command, at);
    let next = lexer.next()?;
    let mut parser = Parser { source, command, lexer, next, names, nesting: 0 };
    let parsed = parser.expression(Level::Or)?;
    match parser.next.token {
        Token::End => Ok((parsed.expr, parser.next.start)),
        _ => Err(parser.syntax_error("an operator or the end of the line")),
    }
}

/// Maximum nesting of an expression. Parsing, evaluating and dropping recurse that deep.
const MAX_DEPTH: usize = 250;

/// Precedence, from the loosest to the tightest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Not,
    Is,
    Comparison,
    Bits,
    Sum,
    Product,
    Operand,
}

struct Parser<'a, 'n> {
    source: Source<'a>,
    command: &'a str,
    lexer: Lexer<'a>,
    next: Spanned<'a>,
    names: &'n mut Names,
    nesting: usize,
}

/// A part of an expression, and its depth.
struct Parsed {
    expr: Expr,
    depth: usize,
}

impl<'a> Parser<'a, '_> {
    /// An operand and the subsequent operators that bind at least as tightly as `loosest`.
    fn expression(&mut self, loosest: Level) -> Result<Parsed, ScriptError> {
        self.nesting += 1;
        self.check_depth(self.nesting)?;
        let mut left = self.operand()?;
        while let Some(infix) = Infix::from_token(self.next.token).filter(|infix| infix.level() >= loosest) {
            let operator = self.advance()?;
            left = match infix {
                Infix::Binary(level, tighter, build) => {
                    let right = self.expression(tighter)?;
                    if level == Level::Comparison
                        && Infix::from_token(self.next.token).is_some_and(|i| i.level() == level)
                    {
                        return Err(self.syntax_error("parentheses: comparisons cannot be chained"));
                    }
                    Parsed { depth: left.depth.max(right.depth), expr: build(left.expr, right.expr) }
                }
                Infix::Test => self.test(left, operator)?,
            };
            left.depth += 1;
            self.check_depth(left.depth)?;
        }
        self.nesting -= 1;
        Ok(left)
    }

    /// `isnull`, `notnull`, `is [not] null|true|false`, after the token `operator`.
    fn test(&mut self, left: Parsed, operator: Spanned<'a>) -> Result<Parsed, ScriptError> {
        let (negated, value) = match operator.token {
            Token::Keyword(Keyword::IsNull) => (false, Value::Null),
            Token::Keyword(Keyword::NotNull) => (true, Value::Null),
            _ => {
                let negated = self.next.token == Token::Keyword(Keyword::Not);
                if negated {
                    self.advance()?;
                }
                let value = match self.next.token {
                    Token::Keyword(Keyword::Null) => Value::Null,
                    Token::Keyword(Keyword::True) => Value::Bool(true),
                    Token::Keyword(Keyword::False) => Value::Bool(false),
                    _ => return Err(self.syntax_error("null, true or false after is")),
                };
                self.advance()?;
                (negated, value)
            }
        };
        let is = binary(Binary::Is, left.expr, Expr::Constant(value));
        let expr = if negated { Expr::Unary(Unary::Not, Box::new(is)) } else { is };
        Ok(Parsed { expr, depth: left.depth + usize::from(negated) })
    }

    fn operand(&mut self) -> Result<Parsed, ScriptError> {
        let leaf = |expr| Ok(Parsed { expr, depth: 1 });
        let Spanned { token, start, .. } = self.next;
        match token {
            Token::Integer(value) => self.constant(Value::Int(value)),
            Token::Double(value) => self.constant(Value::Double(value)),
            Token::Keyword(Keyword::Null) => self.constant(Value::Null),
            Token::Keyword(Keyword::True) => self.constant(Value::Bool(true)),
            Token::Keyword(Keyword::False) => self.constant(Value::Bool(false)),
            Token::Variable(name) => {
                self.advance()?;
                leaf(Expr::Variable(self.slot(name, start)?))
            }
            Token::Function(name) => {
                let Some((name, function)) = Function::find(name) else {
                    return Err(self.unknown_function(name, start));
                };
                self.advance()?;
                self.call(function, name, start)
            }
            Token::OpenParen => {
                self.advance()?;
                let inner = self.expression(Level::Or)?;
                self.expect(Token::CloseParen, "an operator or )")?;
                Ok(inner)
            }
            Token::Keyword(Keyword::Case) => {
                self.advance()?;
                self.case()
            }
            Token::Keyword(Keyword::Not) => {
                self.prefix(Level::Not, |operand| Expr::Unary(Unary::Not, Box::new(operand)))
            }
            Token::Operator(Operator::BitNot) => self.prefix(Level::Sum, |operand| {
                binary(Binary::BitXor, Expr::Constant(Value::Int(-1)), operand)
            }),
            Token::Operator(Operator::Plus) => self.prefix(Level::Operand, |operand| operand),
            Token::Operator(Operator::Minus) => {
                self.advance()?;
                if self.next.token == Token::IntegerMinMagnitude {
                    return self.constant(Value::Int(i64::MIN));
                }
                let operand = self.expression(Level::Operand)?;
                let zero = Expr::Constant(Value::Int(0));
                Ok(Parsed { expr: binary(Binary::Subtract, zero, operand.expr), depth: operand.depth + 1 })
            }
            Token::IntegerMinMagnitude => Err(self.syntax_error("an integer of at most 9223372036854775807")),
            _ => Err(self.syntax_error("a number, a :variable, a function, case, not, - or (")),
        }
    }

    fn constant(&mut self, value: Value) -> Result<Parsed, ScriptError> {
        self.advance()?;
        Ok(Parsed { expr: Expr::Constant(value), depth: 1 })
    }

    fn prefix(&mut self, tighter: Level, build: impl Fn(Expr) -> Expr) -> Result<Parsed, ScriptError> {
        self.advance()?;
        let operand = self.expression(tighter)?;
        Ok(Parsed { expr: build(operand.expr), depth: operand.depth + 1 })
    }

    /// The arguments of a function, from the opening parenthesis on.
    fn call(&mut self, function: Function, name: &str, start: usize) -> Result<Parsed, ScriptError> {
        self.expect(Token::OpenParen, "( after the name of a function")?;
        let mut arguments = Vec::new();
        let mut depth = 0;
        if self.next.token != Token::CloseParen {
            // pgbench accepts a comma before the first argument, too.
            if self.next.token == Token::Comma {
                self.advance()?;
            }
            loop {
                let argument = self.expression(Level::Or)?;
                depth = depth.max(argument.depth);
                arguments.push(argument.expr);
                if self.next.token != Token::Comma {
                    break;
                }
                self.advance()?;
            }
        }
        self.expect(Token::CloseParen, "an operator, a comma or )")?;
        let seed =
            if function.lacks_seed(arguments.len()) { Some(self.slot(DEFAULT_SEED, start)?) } else { None };
        let message = match (function, arguments.is_empty()) {
            (Function::Extremum(_), true) => "at least one argument expected",
            _ => "unexpected number of arguments",
        };
        match function.call(arguments, seed) {
            Some(expr) => Ok(Parsed { expr, depth: depth + 1 }),
            None => Err(self.error(start, message, name, function.arity())),
        }
    }

    /// `case`, from the first `when` on.
    fn case(&mut self) -> Result<Parsed, ScriptError> {
        let mut arms = Vec::new();
        let mut depth = 0;
        self.expect(Token::Keyword(Keyword::When), "when")?;
        loop {
            let condition = self.expression(Level::Or)?;
            self.expect(Token::Keyword(Keyword::Then), "an operator or then")?;
            let value = self.expression(Level::Or)?;
            depth = depth.max(condition.depth).max(value.depth);
            arms.push((condition.expr, value.expr));
            if self.next.token != Token::Keyword(Keyword::When) {
                break;
            }
            self.advance()?;
        }
        let mut otherwise = Expr::Constant(Value::Null);
        if self.next.token == Token::Keyword(Keyword::Else) {
            self.advance()?;
            let value = self.expression(Level::Or)?;
            depth = depth.max(value.depth);
            otherwise = value.expr;
        }
        self.expect(Token::Keyword(Keyword::End), "an operator, when, else or end")?;
        Ok(Parsed {
            expr: Expr::Case { arms: arms.into(), otherwise: Box::new(otherwise) },
            depth: depth + 1,
        })
    }

    fn expect(&mut self, token: Token<'_>, expected: &str) -> Result<(), ScriptError> {
        if self.next.token != token {
            return Err(self.syntax_error(expected));
        }
        self.advance()?;
        Ok(())
    }

    /// Advances to the next token; returns the current one.
    fn advance(&mut self) -> Result<Spanned<'a>, ScriptError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn slot(&mut self, name: &str, start: usize) -> Result<Slot, ScriptError> {
        self.names.slot(name).ok_or_else(|| self.source.too_many_variables(start))
    }

    fn check_depth(&self, depth: usize) -> Result<(), ScriptError> {
        if depth <= MAX_DEPTH {
            return Ok(());
        }
        Err(self.source.error(
            self.next.start,
            &Diagnostic {
                message: "expression is nested too deeply",
                command: Some(self.command),
                expected: &format!("at most {MAX_DEPTH} levels; use several \\set commands"),
                ..Diagnostic::default()
            },
        ))
    }

    fn unknown_function(&self, name: &str, start: usize) -> ScriptError {
        let known: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
        self.error(start, "unexpected function name", name, &format!("one of: {}", known.join(", ")))
    }

    fn syntax_error(&self, expected: &str) -> ScriptError {
        let command = Some(self.command);
        self.source.error(
            self.next.start,
            &Diagnostic { message: "syntax error", command, expected, ..Diagnostic::default() },
        )
    }

    fn error(&self, start: usize, message: &str, near: &str, expected: &str) -> ScriptError {
        let (near, command) = (Some(near), Some(self.command));
        self.source.error(start, &Diagnostic { message, near, command, expected, headline: None })
    }
}

/// A token that may follow an operand.
enum Infix {
    /// Level of an operator, the loosest level of its right side, and the constructor of its expression.
    Binary(Level, Level, fn(Expr, Expr) -> Expr),
    /// `is` and its relatives, whose right side is a keyword.
    Test,
}

impl Infix {
    fn from_token(token: Token<'_>) -> Option<Infix> {
        let infix = |level, tighter, build| Some(Infix::Binary(level, tighter, build));
        match token {
            Token::Keyword(Keyword::Or) => infix(Level::Or, Level::And, |a, b| Expr::Or(Box::new([a, b]))),
            Token::Keyword(Keyword::And) => infix(Level::And, Level::Not, |a, b| Expr::And(Box::new([a, b]))),
            Token::Keyword(Keyword::Is | Keyword::IsNull | Keyword::NotNull) => Some(Infix::Test),
            Token::Operator(operator) => {
                let (level, tighter, build): (_, _, fn(Expr, Expr) -> Expr) = match operator {
                    Operator::Equal => (Level::Comparison, Level::Bits, |a, b| binary(Binary::Equal, a, b)),
                    Operator::NotEqual => {
                        (Level::Comparison, Level::Bits, |a, b| binary(Binary::NotEqual, a, b))
                    }
                    Operator::Less => (Level::Comparison, Level::Bits, |a, b| binary(Binary::Less, a, b)),
                    Operator::LessOrEqual => {
                        (Level::Comparison, Level::Bits, |a, b| binary(Binary::LessOrEqual, a, b))
                    }
                    Operator::Greater => (Level::Comparison, Level::Bits, |a, b| binary(Binary::Less, b, a)),
                    Operator::GreaterOrEqual => {
                        (Level::Comparison, Level::Bits, |a, b| binary(Binary::LessOrEqual, b, a))
                    }
                    Operator::BitOr => (Level::Bits, Level::Sum, |a, b| binary(Binary::BitOr, a, b)),
                    Operator::BitAnd => (Level::Bits, Level::Sum, |a, b| binary(Binary::BitAnd, a, b)),
                    Operator::BitXor => (Level::Bits, Level::Sum, |a, b| binary(Binary::BitXor, a, b)),
                    Operator::ShiftLeft => (Level::Bits, Level::Sum, |a, b| binary(Binary::ShiftLeft, a, b)),
                    Operator::ShiftRight => {
                        (Level::Bits, Level::Sum, |a, b| binary(Binary::ShiftRight, a, b))
                    }
                    Operator::Plus => (Level::Sum, Level::Product, |a, b| binary(Binary::Add, a, b)),
                    Operator::Minus => (Level::Sum, Level::Product, |a, b| binary(Binary::Subtract, a, b)),
                    Operator::Star => (Level::Product, Level::Operand, |a, b| binary(Binary::Multiply, a, b)),
                    Operator::Slash => (Level::Product, Level::Operand, |a, b| binary(Binary::Divide, a, b)),
                    Operator::Percent => {
                        (Level::Product, Level::Operand, |a, b| binary(Binary::Modulo, a, b))
                    }
                    Operator::BitNot => return None,
                };
                infix(level, tighter, build)
            }
            _ => None,
        }
    }

    fn level(&self) -> Level {
        match self {
            Infix::Binary(level, _, _) => *level,
            Infix::Test => Level::Is,
        }
    }
}

fn binary(function: Binary, left: Expr, right: Expr) -> Expr {
    Expr::Binary(function, Box::new([left, right]))
}
