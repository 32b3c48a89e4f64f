// Verifies deliveries with the library for Node. Its first line is its port, each other one a delivery.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const hook = new Webhook(readFileSync("new.secret", "utf8"));
const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    const message = hook.verify(Buffer.concat(chunks).toString(), request.headers);
    console.log(JSON.stringify({ id: request.headers["webhook-id"], type: message.type }));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
  response.writeHead(204).end();
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
