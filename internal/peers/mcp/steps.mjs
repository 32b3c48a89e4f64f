// What every client of TypeScript does with a gateway; it prints what it saw as JSON.
const [, , transport, short, long, control, name] = process.argv;

export async function drive(connect) {
  const steps = process.env.ASSENT_MCP_STEPS === "minute" ? minute : all;
  console.log(JSON.stringify(await steps(connect)));
  process.exit(0);
}

const path = (step) => `/${name}/${step}`;
const ask = (what, at) => fetch(`${control}/${what}?path=${encodeURIComponent(at)}`, { method: "POST" });
const approve = (at) => ask("approve", at);

async function call(client, tool, at, options) {
  try {
    const r = await client.call({ name: tool, arguments: { path: at } }, options);
    return { isError: r.isError ?? false, text: r.content[0]?.text ?? "", structured: r.structuredContent };
  } catch (e) {
    return { failed: String(e.message) };
  }
}

// minute makes calls with the SDK's own limit, whose people answer too late for it.
async function minute(connect) {
  const client = await connect(transport, long, name);
  const messages = [];
  const progress = { onprogress: (p) => messages.push(p.message) };
  const [pending, slow, late] = await Promise.all([
    call(client, "write_file", path("pending")),
    (async () => {
      setTimeout(() => approve(path("slow")), 90_000);
      return call(client, "write_file", path("slow"), { ...progress, resetTimeoutOnProgress: true });
    })(),
    call(client, "write_file", path("late"), progress),
  ]);
  await approve(path("late"));
  const after = await call(client, "write_file", path("late"));
  return { version: client.version(), pending, progress: slow, messages, timeout: late, after };
}

async function all(connect) {
  const brief = await connect(transport, short, name);
  const patient = await connect(transport, long, name);

  const out = { version: brief.version() };
  out.tools = await brief.tools();
  out.allowed = await call(brief, "read_file", "/allowed");
  out.denied = await call(brief, "format_disk", "/denied");
  out.pending = await call(brief, "write_file", path("pending"));
  await approve(path("pending"));
  out.approved = await call(brief, "write_file", path("pending"));

  out.messages = [];
  setTimeout(() => approve(path("slow")), 3_000);
  out.progress = await call(patient, "write_file", path("slow"), {
    timeout: 2_500,
    resetTimeoutOnProgress: true,
    onprogress: (p) => out.messages.push(p.message),
  });
  out.timeout = await call(patient, "write_file", path("late"), { timeout: 1_000 });
  await approve(path("late"));
  out.after = await call(patient, "write_file", path("late"));
  const gone = call(patient, "write_file", path("kept"), { timeout: 2_000 });
  await approve(path("kept"));
  out.gone = await gone;
  await ask("release", path("kept"));
  out.kept = await call(patient, "write_file", path("kept"));
  if (patient.task) {
    setTimeout(() => approve(path("task")), 500);
    out.task = await patient.task({ name: "write_file", arguments: { path: path("task") } });
  }
  await brief.close();
  await patient.close();
  return out;
}
