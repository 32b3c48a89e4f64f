"""Reads lists with the types of the official Python SDK, and with its strict ones of two versions.

usage: lists.py FILE
"""
import json
import sys

import mcp.types
from mcp_types import _v2025_11_25, _v2026_07_28

NAMES = {
    "tools/list": "ListToolsResult",
    "prompts/list": "ListPromptsResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
}
STRICT = {"2025-11-25": _v2025_11_25, "2026-07-28": _v2026_07_28}
raw = failed = 0
for line in open(sys.argv[1], encoding="utf-8"):
    one = json.loads(line)
    for module in filter(None, [mcp.types, STRICT.get(one["version"])]):
        try:
            getattr(module, NAMES[one["method"]]).model_validate(one["result"])
        except ValueError as e:
            if one["raw"]:
                raw += 1
            else:
                failed += 1
                print(module.__name__, one["version"], json.dumps(one["result"]), e)
print(f"refused as drawn: {raw}")
sys.exit(failed > 0)
