// What every script here shares: one JSON object per line on standard output,
// and an end when whoever started it goes away.
import { createInterface } from "node:readline";

export const report = (event, details) => console.log(JSON.stringify({ event, ...details }));

export function onCommand(run) {
    const lines = createInterface({ input: process.stdin });
    lines.on("line", (line) => run(...line.split(" ")));
    lines.on("close", () => process.exit(0));
}
