"""The official Python client against a gateway; it prints what it saw as JSON."""

import asyncio
import json
import sys
import urllib.parse
import urllib.request

from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client

transport, short, long, control, name = sys.argv[1:6]


def connect(to):
    if transport == "stdio":
        return Client(stdio_client(StdioServerParameters(command="node", args=["bridge.mjs", to])))
    return Client(to)


async def approve(path, what="approve"):
    url = f"{control}/{what}?path={urllib.parse.quote(path)}"
    await asyncio.to_thread(lambda: urllib.request.urlopen(urllib.request.Request(url, method="POST")).read())


async def call(client, tool, path, **options):
    try:
        r = await client.call_tool(tool, {"path": path}, **options)
    except Exception as e:
        return {"failed": f"{type(e).__name__}: {e}"}
    text = r.content[0].text if r.content else ""
    return {"isError": bool(r.is_error), "text": text, "structured": r.structured_content}


async def tools(client):
    count, cursor = 0, None
    while True:
        page = await client.list_tools(cursor=cursor)
        count += len(page.tools)
        cursor = page.next_cursor
        if cursor is None:
            return count


async def main():
    async with connect(short) as brief, connect(long) as patient:
        out = {"version": brief.protocol_version, "tools": await tools(brief)}
        out["allowed"] = await call(brief, "read_file", "/allowed")
        out["denied"] = await call(brief, "format_disk", "/denied")
        pending = f"/{name}/pending"
        out["pending"] = await call(brief, "write_file", pending)
        await approve(pending)
        out["approved"] = await call(brief, "write_file", pending)

        messages = []

        async def progress(_done, _total, message):
            messages.append(message)

        async def later(path):
            await asyncio.sleep(3)
            await approve(path)

        slow = f"/{name}/slow"
        waiting = asyncio.create_task(later(slow))
        out["progress"] = await call(patient, "write_file", slow, progress_callback=progress)
        await waiting
        out["messages"] = messages
        late = f"/{name}/late"
        out["timeout"] = await call(patient, "write_file", late, read_timeout_seconds=1)
        await approve(late)
        out["after"] = await call(patient, "write_file", late)
        kept = f"/{name}/kept"
        gone = asyncio.create_task(call(patient, "write_file", kept, read_timeout_seconds=2))
        await approve(kept)
        out["gone"] = await gone
        await approve(kept, "release")
        out["kept"] = await call(patient, "write_file", kept)
        print(json.dumps(out))


asyncio.run(main())
