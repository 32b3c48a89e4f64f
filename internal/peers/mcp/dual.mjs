import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";
import { drive } from "./steps.mjs";

// The era may stand behind the name: ext-tasks follows the tasks of the older one without more.
const mode = process.argv[7] ?? "auto";

await drive(async (transport, to, name) => {
  const client = new Client({ name, version: "1" }, { versionNegotiation: { mode } });
  await client.connect(
    transport === "stdio"
      ? new StdioClientTransport({ command: "node", args: ["bridge.mjs", to] })
      : new StreamableHTTPClientTransport(new URL(to)),
  );
  return {
    version: () => client.getNegotiatedProtocolVersion(),
    tools: async () => (await client.listTools()).tools.length,
    call: (params, options) => client.callTool(params, options),
    task:
      mode === "legacy" &&
      (async (params) => {
        const session = createTaskSessionFromClient(client, { endpointId: "gateway" });
        const execution = await session.callTool(params.name, params.arguments);
        const { outcome } = await execution.settle();
        const result = resultFromTaskOutcome(outcome);
        await session.close();
        return { isError: result.isError ?? false, text: result.content[0].text };
      }),
    close: () => client.close(),
  };
});
