// node client.mjs URL
// Takes a slot with the tools echo, count and wait through everything the
// official client does over Streamable HTTP.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { onCommand, report } from "./report.mjs";

onCommand(() => {});
const client = new Client({ name: "node", version: "1.0.0" });
const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
await client.connect(transport);
report("connected", {
    server: client.getServerVersion().name,
    revision: transport.protocolVersion,
    session: transport.sessionId,
});

const { tools } = await client.listTools();
report("tools", { names: tools.map((tool) => tool.name) });

const echoed = await client.callTool({ name: "echo", arguments: { message: "h\u00e9llo <&>" } });
report("echo", { content: echoed.content });

const progress = [];
const counted = await client.callTool({ name: "count", arguments: { to: 3 } }, undefined, {
    onprogress: (p) => progress.push(p.progress),
});
report("count", { content: counted.content, progress });

const abort = new AbortController();
const waiting = client.callTool({ name: "wait", arguments: {} }, undefined, {
    signal: abort.signal,
    onprogress: () => abort.abort("enough"),
});
report("wait", { outcome: await waiting.then(() => "answered", (error) => error.message) });

await transport.terminateSession();
report("terminated", { session: transport.sessionId ?? null });
await client.close();
process.exit(0);
