"""Arguments as a tool reads them: with its defaults, and refused before people are asked if the tool can't run."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from .call import Arguments, values_of
from .errors import CallError

DEPTH = 100  # of schemas and values; a schema may refer to itself


def by_model(name: str, args: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Adds the defaults of a pydantic model to arguments. Raises CallError if the model does not take them."""
    try:
        read = model.model_validate(dict(args))
    except ValidationError as e:
        raise CallError(f"{name} can't be called with this: {reasons(e)}") from e
    return dict(_with_unset(name, dict(args), read, DEPTH))


def with_unset(name: str, given: dict[str, Any], read: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """Adds what reading arguments has set by default, if the tool's schema knows it by that name."""
    out = dict(_with_unset(name, given, read, DEPTH))
    for field, value in read.items() if isinstance(read, dict) else ():
        if field in known and field not in out:
            out[field] = _shown(name, field, value)
    return out


def by_schema(name: str, args: Arguments, schema: Mapping[str, Any]) -> Arguments:
    """Adds the defaults of a JSON schema to arguments. Raises CallError if a required one is missing.

    A text to which nothing is added stays as it is, byte for byte.
    """
    values = values_of(args) if isinstance(args, str) else dict(args)
    filled = _by_schema(name, values, schema, schema, "", DEPTH)
    return args if filled == values else dict(filled)


def by_signature(
    name: str, args: Arguments, function: Callable[..., Any], ignored: tuple[str, ...] = (), more: bool = False
) -> Arguments:
    """Adds the defaults of a function to arguments. Raises CallError if it can't be called with them.

    Parameters that are ignored come from the framework. With more, other names are left to the framework.
    """
    values = values_of(args) if isinstance(args, str) else dict(args)
    filled = dict(values)
    parameters = inspect.signature(function).parameters
    named = [each for each in parameters.values() if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    for each in named:
        if each.name in values or each.name in ignored:
            continue
        if each.default is each.empty:
            raise CallError(f"{name} can't be called with this: {each.name} is missing")
        filled[each.name] = _shown(name, each.name, each.default)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    if not more and not takes_any and (unknown := filled.keys() - {each.name for each in named}):
        raise CallError(f"{name} can't be called with this: it takes no {', '.join(sorted(unknown))}")
    return args if filled == values else filled


def reasons(error: ValidationError) -> str:
    """The fields that are wrong and why, without their values."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    shown = [f"{'.'.join(map(str, each['loc'])) or 'it'}: {_why(each)}" for each in found[:5]]
    return "; ".join(shown) + ("; …" if len(found) > 5 else "")


def _why(found: Any) -> str:
    return "missing" if found["type"] in ("missing", "missing_argument") else str(found["msg"])


def _with_unset(name: str, given: Any, read: Any, depth: int) -> Any:
    """What was given, with the fields that reading it set by default."""
    if depth == 0:
        raise CallError(f"{name} can't be called with this: it is nested more than {DEPTH} deep")
    if isinstance(given, dict) and isinstance(read, BaseModel):
        out = dict(given)
        for field, info in type(read).model_fields.items():
            names = [each for each in (field, info.alias, info.validation_alias) if isinstance(each, str)]
            if field not in read.model_fields_set:
                if getattr(read, field) is not None or _takes_none(info.annotation):
                    out[names[-1]] = _shown(name, field, getattr(read, field))
                continue
            for each in names:
                if each in given:
                    out[each] = _with_unset(name, given[each], getattr(read, field), depth - 1)
        return out
    if isinstance(given, dict) and is_dataclass(read) and not isinstance(read, type):
        unset = {each.name: getattr(read, each.name) for each in fields(read) if each.init}
        nested = {each: _with_unset(name, given[each], unset[each], depth - 1) for each in given if each in unset}
        return {**given, **nested, **{n: _shown(name, n, value) for n, value in unset.items() if n not in given}}
    if isinstance(given, dict) and isinstance(read, dict):
        return {n: _with_unset(name, value, read.get(n), depth - 1) for n, value in given.items()}
    if isinstance(given, list) and isinstance(read, (list, tuple)) and len(given) == len(read):
        return [_with_unset(name, value, of, depth - 1) for value, of in zip(given, read, strict=True)]
    return given


def _takes_none(annotation: Any) -> bool:
    if annotation in (None, type(None), Any, object):
        return True
    return get_origin(annotation) in (Union, types.UnionType) and any(map(_takes_none, get_args(annotation)))


def _shown(name: str, field: str, default: Any) -> Any:
    """A default as JSON. One that JSON can't hold is refused, because people would not see what runs."""
    try:
        return to_jsonable_python(default, by_alias=True, inf_nan_mode="strings", serialize_unknown=False)
    except (PydanticSerializationError, ValueError) as e:
        raise CallError(f"the default of {field} of {name} can't be shown to people: expected a value of JSON") from e


def _by_schema(name: str, value: Any, schema: Any, root: Mapping[str, Any], path: str, depth: int) -> Any:
    schema = _resolved(schema, root)
    if depth == 0 or not isinstance(schema, Mapping):
        return value
    if isinstance(value, list):
        items = schema.get("items")
        return [_by_schema(name, each, items, root, f"{path}[{i}]", depth - 1) for i, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    out = dict(value)
    for field, of in _members(schema, root, "properties", DEPTH).items():
        place = f"{path}.{field}" if path else field
        resolved = _resolved(of, root)
        if field not in out and isinstance(resolved, Mapping) and "default" in resolved:
            out[field] = resolved["default"]
        if field in out:
            out[field] = _by_schema(name, out[field], resolved, root, place, depth - 1)
    for field in _members(schema, root, "required", DEPTH):
        if field not in out:
            raise CallError(f"{name} can't be called with this: {f'{path}.{field}' if path else field} is missing")
    return out


def _members(schema: Any, root: Mapping[str, Any], keyword: str, depth: int) -> dict[str, Any]:
    """The properties of a schema, or the names that it requires, with those of its allOf."""
    found: dict[str, Any] = {}
    for each in schema.get("allOf") or () if depth else ():
        if isinstance(resolved := _resolved(each, root), Mapping):
            found |= _members(resolved, root, keyword, depth - 1)
    own = schema.get(keyword)
    if isinstance(own, Mapping):
        found |= own
    elif isinstance(own, list):
        found |= dict.fromkeys(each for each in own if isinstance(each, str))
    return found


def _resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    """A schema behind its local references, and the one alternative of a schema that also takes null."""
    for _ in range(DEPTH):
        if not isinstance(schema, Mapping):
            return schema
        beside = {name: value for name, value in schema.items() if name == "default"}
        if isinstance(ref := schema.get("$ref"), str) and ref.startswith("#/"):
            target: Any = root
            for part in ref[2:].split("/"):
                part = part.replace("~1", "/").replace("~0", "~")
                target = target.get(part) if isinstance(target, Mapping) else None
            schema = {**target, **beside} if isinstance(target, Mapping) else {}
            continue
        others = [each for each in schema.get("anyOf") or schema.get("oneOf") or () if each != {"type": "null"}]
        if len(others) == 1 and "properties" not in schema and isinstance(others[0], Mapping):
            schema = {**others[0], **beside}
            continue
        return schema
    return {}
