// node visitor.mjs http|sse URL, or node visitor.mjs stdio COMMAND ARGUMENT...
// Does with the official client all there is to do in a workshop and reports
// what it saw, in one line.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { onCommand, report } from "./report.mjs";

onCommand(() => {});
const level = "workshop://level";
const questions = ["sampling/createMessage", "elicitation/create"];
const streams = []; // what each event stream has carried so far

async function tap(url, init) {
    const response = await fetch(url, init);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    const stream = { method: init?.method ?? "GET", text: "" };
    streams.push(stream);
    const noting = new TransformStream({
        transform(chunk, out) {
            stream.text += Buffer.from(chunk).toString("latin1");
            out.enqueue(chunk);
        },
    });
    const { status, headers } = response;
    return new Response(response.body.pipeThrough(noting), { status, headers });
}

function open(kind, target, ...args) {
    switch (kind) {
        case "http":
            return new StreamableHTTPClientTransport(new URL(target), { fetch: tap });
        case "sse":
            return new SSEClientTransport(new URL(target), { fetch: tap });
        case "stdio":
            return new StdioClientTransport({ command: target, args, env: { ...process.env, HOME: process.cwd() } });
    }
}

const client = new Client({ name: "node", version: "1.0.0" }, { capabilities: { sampling: {}, elicitation: {} } });
client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    role: "assistant",
    model: "m",
    content: { type: "text", text: `sampled: ${[params.messages[0].content].flat()[0].text}` },
}));
client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { name: "Ann" } }));
const updated = new Promise((resolve) => {
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => resolve(params.uri));
});

async function use(name, text = "", onprogress = () => {}) {
    const result = await client.callTool({ name, arguments: { text } }, undefined, { onprogress });
    return result.content[0].text;
}

const transport = open(...process.argv.slice(2));
let revision;
const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
    revision = version;
    setProtocolVersion?.(version);
};
await client.connect(transport);
const seen = { Server: client.getServerVersion().name, Revision: revision };
seen.Tools = (await client.listTools()).tools.map((tool) => tool.name);
seen.Echo = await use("echo", "h\u00e9llo <&>");
seen.Progress = [];
let counting;
await new Promise((resolve) => {
    counting = use("count", "", ({ progress }) => seen.Progress.push(progress) === 3 && resolve());
});
await use("enough");
seen.Counted = await counting;
await client.subscribeResource({ uri: level });
await use("raise");
seen.Updated = await updated;
await client.unsubscribeResource({ uri: level });
seen.Asked = await use("ask", "who?");
seen.Confirmed = await use("confirm", "sure?");
if (streams.length > 0) {
    const carriers = (question) => streams.filter((stream) => stream.text.includes(`"method":"${question}"`));
    seen.Carried = Object.fromEntries(questions.map((question) => [question, carriers(question).map((s) => s.method).join()]));
}
await transport.terminateSession?.();
await client.close();
report("visit", { seen });
process.exit(0);
