/**
 * An agent whose tools ask: a scripted model makes three calls in one turn, and is told what became of each. Run it
 * beside a server, with ASSENT_SERVER and ASSENT_TOKEN, and answer in the inbox.
 */

import { Client, keyOf, told, tool } from "assent";

type Args = Record<string, unknown>;

const SESSION = "s-1";
const TURN: [id: string, name: string, args: Args][] = [
  ["call_1", "quote", { symbol: "ACME" }],
  ["call_2", "trade", { symbol: "ACME", amount: 20000 }],
  ["call_3", "drop_table", { name: "trades" }],
];
const TOOLS: Record<string, (args: Args) => string> = {
  quote: ({ symbol }) => `${symbol} is at 150.25`,
  trade: ({ symbol, amount }) => `bought ${amount} of ${symbol}`,
  drop_table: ({ name }) => `${name} is gone`,
};

const client = new Client(process.env.ASSENT_SERVER ?? "", process.env.ASSENT_TOKEN ?? "");

/** What the model is told about one of its calls. */
async function answer(id: string, name: string, args: Args): Promise<string> {
  try {
    const taken = await client.take("desk", tool(name, args, { session: SESSION }), { key: keyOf(SESSION, id) });
    return TOOLS[name]!(taken.args);
  } catch (error) {
    return told(error);
  }
}

const answers = await Promise.all(TURN.map((call) => answer(...call)));
TURN.forEach(([id, name], i) => console.log(`${id} ${name}: ${answers[i]}`));
