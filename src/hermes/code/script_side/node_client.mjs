// Client of the calls from a script to tools, for Node.js: makes `globalThis.hermes_tools`.
// The channel and the names of the tools are in CHANNEL and TOOLS, which stand before this text.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";

class ToolError extends Error {
  constructor(tool, answer) {
    super(`${tool}: ${answer.error ?? ""}${answer.hint ? ` (${answer.hint})` : ""}`);
    Object.assign(this, { name: "ToolError", tool, reason: answer.error, hint: answer.hint, data: answer.data });
  }
}

const over = () => new Error("tools can't be called any more: this script is over for its caller");
const idle = [];

function frame(data) {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(data.length);
  return Buffer.concat([size, data]);
}

// One connection serves one call at a time; calls side by side have one each.
function connect() {
  const peer = net.createConnection(CHANNEL.socket);
  let buffer = Buffer.alloc(0);
  peer.on("data", (piece) => {
    buffer = Buffer.concat([buffer, piece]);
    if (buffer.length < 4 || buffer.length < 4 + buffer.readUInt32BE(0)) return;
    const answer = JSON.parse(buffer.subarray(4));
    buffer = Buffer.alloc(0);
    peer.unref();
    idle.push(peer);
    peer.settle.resolve(answer);
  });
  for (const event of ["error", "close"]) peer.on(event, () => peer.settle?.reject(over()));
  peer.write(frame(Buffer.from(CHANNEL.token)));
  return peer;
}

function exchange(request) {
  if (!CHANNEL.socket) return exchangeFiles(request);
  const peer = idle.pop() ?? connect();
  peer.ref();
  return new Promise((resolve, reject) => {
    peer.settle = { resolve, reject };
    peer.write(frame(Buffer.from(JSON.stringify(request))));
  });
}

let count = 0;
let queue = null;

async function exchangeFiles(request) {
  const name = `${process.pid}-${++count}`;
  const answer = `${CHANNEL.folder}/answer-${name}`;
  execFileSync("mkfifo", ["-m", "600", answer]);
  // Pure ASCII, as `JSON.stringify` does not make it by itself.
  const text = JSON.stringify(request).replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  fs.writeFileSync(`${CHANNEL.folder}/request-${name}`, text);
  queue ??= fs.openSync(`${CHANNEL.folder}/requests`, "r+");
  fs.writeSync(queue, `${name} ${CHANNEL.token}\n`);
  const data = await fs.promises.readFile(answer);
  fs.unlinkSync(answer);
  return JSON.parse(data);
}

function line() {
  const match = /\[eval1?\]:(\d+)|\[stdin\]:(\d+)/.exec(new Error().stack ?? "");
  return match ? Number(match[1] ?? match[2]) : 0;
}

async function call(tool, parameters, values) {
  const given = {};
  const named = values.length === 1 && values[0] !== null && typeof values[0] === "object" && !Array.isArray(values[0]);
  if (named) Object.assign(given, values[0]);
  else values.forEach((value, index) => { if (value !== undefined) given[parameters[index]] = value; });
  const answer = await exchange({ tool, arguments: given, line: line() });
  if (answer.error) throw new ToolError(tool, answer.error);
  return answer.result;
}

const tools = { ToolError };
for (const [name, [tool, parameters]] of Object.entries(TOOLS))
  tools[name] = (...values) => call(tool, parameters, values);
tools.artifact = async (handle) => {
  const answer = await exchange({ artifact: handle, line: line() });
  if (answer.error) throw new ToolError("artifact", answer.error);
  return answer.result;
};
tools.progress = (text, fraction = null) => exchange({ progress: String(text), fraction });
globalThis.hermes_tools = Object.freeze(tools);
