"""Validate results.json and the lines of `--json` against their published schema."""

from __future__ import annotations

import json
from functools import cache

import fastjsonschema

from fencepost.harness.package import PACKAGE

SCHEMA = PACKAGE / "report" / "results.schema.json"


@cache
def _validator(about):
    schema = json.loads(SCHEMA.read_text())
    return fastjsonschema.compile(schema | {"$ref": f"#/definitions/{about}"})


def check(about, row):
    """Raise if the row does not match its schema ("results" or "line"), encoded as JSON."""
    _validator(about)(json.loads(json.dumps(row)))
