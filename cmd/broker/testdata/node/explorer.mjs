// node explorer.mjs
// The official client, played by whoever writes its standard input. A line is
// connect and where to, or a method of the client, and its parameters in JSON.
// Each line is answered; notifications are reported when they come.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { onCommand, report } from "./report.mjs";

let client;
let turn = Promise.resolve(); // one line after the other

onCommand((method, ...params) => {
    turn = turn.then(() => obey(method, JSON.parse(params.join(" "))));
});

async function obey(method, params) {
    try {
        report("answer", { method, result: await (method === "connect" ? connect(params) : client[method](params)) });
    } catch (error) {
        report("error", { method, code: error.code ?? null, message: error.message });
    }
}

function open({ url, sse, command, args, env }) {
    if (command) return new StdioClientTransport({ command, args, env: { ...process.env, ...env }, stderr: "inherit" });
    return sse ? new SSEClientTransport(new URL(url)) : new StreamableHTTPClientTransport(new URL(url));
}

// The client asks for the newest revision it knows; revision makes it older.
async function connect({ revision, ...where }) {
    await client?.close();
    client = new Client({ name: "node", version: "1.0.0" });
    client.fallbackNotificationHandler = async ({ method, params }) => report("notification", { method, params: params ?? {} });
    const transport = open(where);
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
        if (revision && message.method === "initialize") message.params.protocolVersion = revision;
        return send(message, options);
    };
    let negotiated;
    const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => {
        negotiated = version;
        setProtocolVersion?.(version);
    };
    await client.connect(transport);
    return { server: client.getServerVersion().name, revision: negotiated, capabilities: client.getServerCapabilities() };
}
