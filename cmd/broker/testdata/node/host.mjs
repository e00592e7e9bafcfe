// node host.mjs COMMAND ARGUMENT...
// Starts an MCP server with the tools echo and clock and talks to it on its
// standard input and output.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { onCommand, report } from "./report.mjs";

onCommand(() => {});
const client = new Client({ name: "node", version: "1.0.0" });
const [command, ...args] = process.argv.slice(2);
const env = { ...process.env, MCP_BROKER_STDIO_PROVIDER: "demo" };
await client.connect(new StdioClientTransport({ command, args, env, stderr: "inherit" }));
report("connected", { server: client.getServerVersion().name });

const { tools } = await client.listTools();
report("tools", { names: tools.map((tool) => tool.name).sort() });

const echoed = await client.callTool({ name: "echo", arguments: { message: "h\u00e9llo <&>" } });
report("echo", { content: echoed.content });

await client.close();
report("closed");
process.exit(0);
