"""Parses SQL expressions, by precedence."""

from __future__ import annotations

from fencepost.hunt.models.postgres.errors import syntax
from fencepost.hunt.models.postgres.lexer import Token, tokens
from fencepost.hunt.models.postgres.syntax import (
    Call,
    Case,
    Cast,
    Column,
    Default,
    Expr,
    In,
    Literal,
    Op,
    Param,
    Select,
    Star,
    Subquery,
)
from fencepost.hunt.models.postgres.types import BY_NAME
from fencepost.hunt.sim.unknown import Unknown

_COMPARES = ("=", "<>", "!=", "<", ">", "<=", ">=")
_RESERVED = frozenset(
    {
        "select", "from", "where", "and", "or", "not", "in", "is", "null", "true", "false", "case",
        "when", "then", "else", "end", "for", "limit", "order", "offset", "returning", "on",
        "values", "set", "group", "having", "union", "with", "create", "table", "as", "asc", "desc",
        "default", "primary", "unique", "references", "check", "constraint", "distinct", "using",
        "all", "any", "user",
    }
)  # fmt: skip
_SPECIAL = {
    "current_timestamp": "now", "current_user": "current_user", "session_user": "current_user",
    "localtimestamp": "localtimestamp", "user": "current_user",
}  # fmt: skip


class Expressions:
    """A parser of one query's tokens. Raises Unknown, with the query, for syntax that the
    model lacks."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._tokens = tokens(sql)
        self._at = 0

    # Tokens.

    @property
    def token(self) -> Token:
        return self._tokens[self._at]

    def peek(self, by: int = 1) -> Token:
        return self._tokens[min(self._at + by, len(self._tokens) - 1)]

    def lacks(self, what: str) -> Unknown:
        return Unknown(f"the model of PostgreSQL has no {what}: {self.sql}")

    def error(self) -> Exception:
        return syntax(self.token.text)

    def next(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these keywords or operators."""
        return all(
            self.peek(place).kind in ("word", "op") and self.peek(place).value == word
            for place, word in enumerate(words)
        )

    def take(self, *words: str) -> bool:
        if self.at(*words):
            self._at += len(words)
            return True
        return False

    def need(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                raise self.error()

    @property
    def named(self) -> bool:
        """Whether the next token is an identifier."""
        token = self.token
        return token.kind == "quoted" or (token.kind == "word" and token.value not in _RESERVED)

    def name(self) -> str:
        """Take an identifier."""
        if self.named:
            return self.next().value
        raise self.error()

    def names(self) -> tuple[str, ...]:
        found = [self.name()]
        while self.take(","):
            found.append(self.name())
        return tuple(found)

    def listed(self) -> tuple[str, ...]:
        """Take names in parentheses."""
        self.need("(")
        found = self.names()
        self.need(")")
        return found

    def relation(self) -> str:
        """Take a table's name, without its schema `public`."""
        found = self.name()
        if self.take("."):
            if found != "public":
                raise self.lacks(f"schema {found}")
            found = self.name()
        return found

    # Expressions.

    def expr(self) -> Expr:
        left = self._and()
        while self.take("or"):
            left = Op("or", (left, self._and()))
        return left

    def _and(self) -> Expr:
        left = self._not()
        while self.take("and"):
            left = Op("and", (left, self._not()))
        return left

    def _not(self) -> Expr:
        return Op("not", (self._not(),)) if self.take("not") else self._is()

    def _is(self) -> Expr:
        left = self._compare()
        while self.take("is"):
            negated = self.take("not")
            if self.take("null"):
                left = Op("is not null" if negated else "is null", (left,))
            elif self.take("distinct", "from"):
                left = Op("not distinct" if negated else "distinct", (left, self._compare()))
            elif self.at("true") or self.at("false"):
                word = Literal("boolean", self.next().value)
                left = Op("distinct" if negated else "not distinct", (left, word))
            else:
                raise self.lacks(f"IS {self.token.text}")
        return left

    def _compare(self) -> Expr:
        left = self._within()
        if self.token.kind == "op" and self.token.value in _COMPARES:
            name = self.next().value
            if self.at("any") or self.at("all"):
                raise self.lacks(f"{name} {self.token.text.upper()}")
            return Op("<>" if name == "!=" else name, (left, self._within()))
        return left

    def _within(self) -> Expr:
        left = self._other()
        negated = self.at("not") and self.peek().value in ("in", "between")
        if negated:
            self.next()
        if self.take("in"):
            self.need("(")
            if self.at("select"):
                raise self.lacks("IN (SELECT ...)")
            among = [self.expr()]
            while self.take(","):
                among.append(self.expr())
            self.need(")")
            return In(left, tuple(among), negated)
        if self.take("between"):
            low = self._other()
            self.need("and")
            high = self._other()
            found = Op("and", (Op(">=", (left, low)), Op("<=", (left, high))))
            return Op("not", (found,)) if negated else found
        if self.at("like") or self.at("ilike"):
            raise self.lacks("LIKE")
        return left

    def _other(self) -> Expr:
        left = self._sum()
        while self.take("||"):
            left = Op("||", (left, self._sum()))
        return left

    def _sum(self) -> Expr:
        left = self._product()
        while self.at("+") or self.at("-"):
            left = Op(self.next().value, (left, self._product()))
        return left

    def _product(self) -> Expr:
        left = self._sign()
        while self.at("*") or self.at("/") or self.at("%"):
            left = Op(self.next().value, (left, self._sign()))
        return left

    def _sign(self) -> Expr:
        if self.take("-"):
            return Op("neg", (self._sign(),))
        self.take("+")
        return self._cast()

    def _cast(self) -> Expr:
        found = self._primary()
        while self.take("::"):
            found = Cast(found, *self.type())
        return found

    def type(self) -> tuple[str, int]:
        """Take a type's name and length."""
        word = self.name()
        if word == "double":
            self.need("precision")
            word = "double precision"
        elif word == "character" and self.take("varying"):
            word = "character varying"
        elif word in ("timestamp", "time"):
            for zone in ("with", "without"):
                if self.take(zone, "time", "zone"):
                    word = f"{word} {zone} time zone"
        if word not in BY_NAME:
            raise self.lacks(f"type {word}")
        length = 0
        if self.take("("):
            length = int(self.next().value)
            self.need(")")
            if BY_NAME[word].name != "character varying":
                raise self.lacks(f"type {word}({length})")
        if self.at("["):
            raise self.lacks("arrays")
        return word, length

    def _primary(self) -> Expr:
        token = self.token
        match token.kind:
            case "number":
                self.next()
                return Literal("integer" if token.value.isdigit() else "numeric", token.value)
            case "string":
                self.next()
                return Literal("string", token.value)
            case "param":
                self.next()
                return Param(int(token.value[1:]))
        if self.take("("):
            if self.at("select"):
                found: Expr = Subquery(self.select())
            else:
                found = self.expr()
            self.need(")")
            return found
        if token.kind == "word":
            return self._word()
        if token.kind == "quoted":
            return self._reference()
        raise self.error()

    def select(self) -> Select:
        raise NotImplementedError

    def _word(self) -> Expr:
        word = self.token.value
        if word in ("true", "false"):
            return Literal("boolean", self.next().value)
        if word == "null":
            self.next()
            return Literal("null", "")
        if word == "default":
            self.next()
            return Default()
        if word == "case":
            return self._case()
        if word == "cast":
            self.next()
            self.need("(")
            value = self.expr()
            self.need("as")
            found = Cast(value, *self.type())
            self.need(")")
            return found
        if word == "exists" and self.peek().value == "(":
            self.next()
            self.need("(")
            select = self.select()
            self.need(")")
            return Subquery(select, exists=True)
        if word == "extract":
            return self._extract()
        if word in _SPECIAL and self.peek().value != "(":
            self.next()
            return Call(_SPECIAL[word], ())
        if word in BY_NAME and self.peek().kind == "string":  # interval '1 second'
            type_ = self.type()
            return Cast(Literal("string", self.next().value), *type_)
        return self._reference()

    def _reference(self) -> Expr:
        name = self.name()
        if self.at("(", "*", ")"):
            for _ in range(3):
                self.next()
            return Call(name, (), star=True)
        if self.take("("):
            return self._call(name)
        if self.take("."):
            if self.take("*"):
                return Star(name)
            inner = self.name()
            if name == "pg_catalog" and self.take("("):
                return self._call(inner)
            return Column(inner, name)
        return Column(name)

    def _call(self, name: str) -> Expr:
        args: list[Expr] = []
        if not self.take(")"):
            while True:
                if (
                    self.token.kind == "word"
                    and self.peek().value in ("=",)
                    and (self.peek(2).value == ">")
                ):
                    args.append(Literal("string", self.next().value))
                    self.next()
                    self.next()
                    name = f"{name} {args.pop().value}"
                args.append(self.expr())
                if not self.take(","):
                    break
            self.need(")")
        if self.at("over") or self.at("filter"):
            raise self.lacks(self.token.text.upper())
        return Call(name, tuple(args))

    def _extract(self) -> Expr:
        self.need("extract", "(")
        what = self.next().value
        self.need("from")
        value = self.expr()
        self.need(")")
        if what != "epoch":
            raise self.lacks(f"extract({what} ...)")
        return Call("extract", (value,))

    def _case(self) -> Expr:
        self.need("case")
        subject = None if self.at("when") else self.expr()
        whens: list[tuple[Expr, Expr]] = []
        while self.take("when"):
            condition = self.expr()
            if subject is not None:
                condition = Op("=", (subject, condition))
            self.need("then")
            whens.append((condition, self.expr()))
        otherwise = self.expr() if self.take("else") else Literal("null", "")
        self.need("end")
        return Case(tuple(whens), otherwise)
