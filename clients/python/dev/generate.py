"""Writes what is made of other files into src/assent_client, or into the folder that is named.

sync.py is aio.py without its awaits. models.py holds types of the HTTP API, from server/openapi/openapi.yaml.
Only what the client sends and reads is generated. Answers are read so that a newer server can be understood: fields may
be added, and where a word may be added (states, causes, codes) any text is read. What decides whether a call may run,
the outcome, stays closed: an unknown word there is an answer that can't be read, and nothing runs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

BLOCKING = [
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsyncClient\b", "Client"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAwaitable\[T\]", "T"),
    (r", Awaitable\b", ""),
    (r"__a(enter|exit)__", r"__\1__"),
    (r"\ba(close|iter_bytes)\b", r"\1"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"^import asyncio\n", ""),
    (r"\bMisuseError, |^    MisuseError,\n", ""),
    (r"^        self\._loop: .*\n", ""),
    (r"^        self\._stay\(\)\n", ""),
    (r"^    def _stay\(self\)(.*\n)+?\n", ""),
    ("by several tasks of a loop at once", "by several threads at once"),
    (", a cancelled task", ""),
    (r"\A.*\n", '"""The client that blocks. Generated from aio.py by dev/generate.py: don\'t edit."""\n'),
]
HERE = Path(__file__).resolve().parent.parent
DOCUMENT = HERE.parent.parent / "server" / "openapi" / "openapi.yaml"
ROOTS = ["Decision", "Opened", "Request", "Problem", "Leaf"]
CLOSED = {("Opened", "outcome"), ("Decision", "outcome")}


def reached(schemas: dict[str, Any], roots: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found[name] = schemas[name]
        todo += [text.split('"')[0] for text in json.dumps(schemas[name]).split('"#/components/schemas/')[1:]]
    return {name: found[name] for name in schemas if name in found}


def opened_up(schema: Any, path: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [opened_up(each, path) for each in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for name, value in schema.items():
        if name in ("if", "then", "else", "not", "example", "pattern") or name.startswith("x-go"):
            continue  # the server says what is wrong with a call
        if name == "additionalProperties" and value is False:
            continue
        if name == "enum" and path not in CLOSED:
            continue
        if name == "properties":
            out[name] = {field: opened_up(each, (*path[:1], field)) for field, each in value.items()}
            continue
        out[name] = opened_up(value, path)
    return out


def blocking(text: str) -> str:
    for found, instead in BLOCKING:
        text = re.sub(found, instead, text, flags=re.MULTILINE)
    return re.sub(r"(from collections.abc import) Iterator, Callable, Mapping", r"\1 Callable, Iterator, Mapping", text)


def main() -> None:
    target = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE / "src" / "assent_client"
    (target / "sync.py").write_text(blocking((HERE / "src" / "assent_client" / "aio.py").read_text()))
    models(target / "models.py")


def models(target: Path) -> None:
    document = yaml.safe_load(DOCUMENT.read_text())
    schemas = reached(document["components"]["schemas"], ROOTS)
    schemas = {name: opened_up(schema, (name,)) for name, schema in schemas.items()}
    small = {"openapi": "3.1.0", "info": document["info"], "paths": {}, "components": {"schemas": schemas}}
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "openapi.json", Path(folder) / "models.py"
        shutil.copy(HERE / "pyproject.toml", folder)  # has the length of lines
        source.write_text(json.dumps(small))
        header = (
            '"""Types of the HTTP API. Generated from server/openapi/openapi.yaml by dev/generate.py: don\'t edit."""'
        )
        command = "--input-file-type openapi --output-model-type pydantic_v2.BaseModel --target-python-version 3.10"
        command += " --use-union-operator --use-standard-collections --disable-timestamp --use-double-quotes"
        command += " --enum-field-as-literal all --collapse-root-models --use-annotated --formatters builtin"
        command += " --extra-fields allow"
        words = [sys.executable, "-m", "datamodel_code_generator", *command.split()]
        words += ["--custom-file-header", header, "--input", str(source), "--output", str(made)]
        subprocess.run(words, check=True)
        target.write_text(made.read_text())


if __name__ == "__main__":
    main()
