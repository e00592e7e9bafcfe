// node provider.mjs [--aggregate] direct|multiplex URL SLOT...
// Publishes slots with the published provider SDK, as members of _all if so told.
// Commands: "close SLOT".
import { DirectTransport, MultiplexTransport } from "@cyanmycelium/mcp-broker-provider";
import { WebSocket } from "ws";
import { onCommand, report } from "./report.mjs";

globalThis.WebSocket = WebSocket; // Node 20 has none of its own
const aggregate = process.argv[2] === "--aggregate";
const [kind, url, ...slots] = process.argv.slice(aggregate ? 3 : 2);
const transports = new Map(slots.map((slot) => [slot, publish(slot)]));
onCommand((_close, slot) => transports.get(slot).close());

function publish(slot) {
    const options = { aggregate };
    const transport = kind === "direct" ? new DirectTransport(url, options) : MultiplexTransport.create(slot, url, options);
    transport.onMessage = (text) => {
        const { id, method, params } = JSON.parse(text);
        if (id !== undefined) transport.send(JSON.stringify({ jsonrpc: "2.0", id, ...answer(slot, method, params) }));
    };
    transport.onOpen = () => report("open", { slot });
    transport.onError = (error) => report("error", { slot, message: error.message });
    transport.onClose = () => report("close", { slot });
    transport.connect();
    return transport;
}

function answer(slot, method, params) {
    switch (method) {
        case "initialize":
            return {
                result: {
                    protocolVersion: params.protocolVersion,
                    capabilities: { tools: {} },
                    serverInfo: { name: slot, version: "1.0.0" },
                },
            };
        case "tools/list":
            return { result: { tools: [{ name: "whoami", inputSchema: { type: "object" } }] } };
        case "tools/call":
            return { result: { content: [{ type: "text", text: `${slot} by ${kind}` }] } };
        default:
            return { error: { code: -32601, message: `Method not found: ${method}` } };
    }
}
