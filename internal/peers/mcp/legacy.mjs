import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { drive } from "./steps.mjs";

await drive(async (transport, to, name) => {
  const client = new Client({ name, version: "1" });
  const pipe =
    transport === "stdio"
      ? new StdioClientTransport({ command: "node", args: ["bridge.mjs", to] })
      : new StreamableHTTPClientTransport(new URL(to));
  let version;
  pipe.setProtocolVersion = ((before) => (v) => {
    version = v;
    before?.call(pipe, v);
  })(pipe.setProtocolVersion);
  await client.connect(pipe);
  return {
    version: () => version,
    tools: async () => {
      let all = 0;
      let cursor;
      do {
        const page = await client.listTools(cursor ? { cursor } : undefined);
        all += page.tools.length;
        cursor = page.nextCursor;
      } while (cursor);
      return all;
    },
    call: (params, options) => client.callTool(params, CallToolResultSchema, options),
    task: async (params) => {
      for await (const m of client.experimental.tasks.callToolStream(params, CallToolResultSchema, { task: {} })) {
        if (m.type === "error") throw m.error;
        if (m.type === "result") return { isError: m.result.isError ?? false, text: m.result.content[0].text };
      }
    },
    close: () => client.close(),
  };
});
