/** The private parts of Node and of libraries that the source uses, with a test of each. */
import { execFileSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, test } from "vitest";
import { ROOT } from "../docs/markdown.ts";

interface PrivatePart {
  readonly part: string;
  readonly of: string;
  /** Symbols to search for, by file. */
  readonly where: Readonly<Record<string, readonly string[]>>;
  /** Why there is no public way. */
  readonly why: string;
  /** What fails if a new version changes it. */
  readonly tests: readonly string[];
}

const PARTS: readonly PrivatePart[] = [
  {
    part: "`_handle`, with `readStop`, `readStart` and `reading`",
    of: "a socket of Node",
    where: { "src/lib/node-internals/node-sockets.ts": ["_handle"] },
    why: "`pause()` still lets through the rest of the current read and what libuv has already polled",
    tests: ["test/server/fair-reading.test.ts"],
  },
  {
    part: "`_parent`",
    of: "a TLS socket of Node",
    where: { "src/lib/node-internals/node-sockets.ts": ["_parent"] },
    why: "nothing leads from a TLS socket to the TCP connection below it",
    tests: ["test/security/plain-http-on-the-tls-port.test.ts"],
  },
  {
    part: "`_httpMessage`",
    of: "a connection of Node's HTTP server",
    where: { "src/lib/node-internals/node-sockets.ts": ["_httpMessage"] },
    why: "of several pipelined requests, Node does not say which one is being answered",
    tests: ["test/security/pipelining-after-refusal.test.ts"],
  },
  {
    part: "`_header`",
    of: "`ServerResponse` of Node",
    where: { "src/lib/node-internals/node-sockets.ts": ["_header"] },
    why: "Node keeps the text of the head until the response is complete, and `writableLength` does not count it",
    tests: ["test/server/bytes-buffered.test.ts"],
  },
  {
    part: "Node's own listeners of `connection` and `secureConnection`",
    of: "a server of Node",
    where: { "src/lib/node-internals/node-sockets.ts": ["takeListeners"] },
    why: "they start to read a connection at once; limits, the PROXY protocol and HTTP/2 come first",
    tests: ["test/security/proxy-protocol.test.ts"],
  },
  {
    part: "`maxHeaderSize` and `connectionsCheckingInterval` as properties",
    of: "a server of Node",
    where: { "src/lib/node-internals/node-sockets.ts": ["changeOptions"] },
    why: "they are options of `createServer`; the first differs for each connection of the admin listener, the second follows a reload",
    tests: [
      "test/security/exhaustion-admin-port.test.ts",
      "test/slow/flows/client-timeouts.test.ts",
    ],
  },
  {
    part: "`remoteAddress` and `remotePort` as properties that can be redefined",
    of: "a socket of Node",
    where: { "src/lib/node-internals/node-sockets.ts": ["setPeerAddress"] },
    why: "they have no setter, and a proxy names another peer",
    tests: ["test/security/proxy-protocol.test.ts", "test/flows/explain.test.ts"],
  },
  {
    part: "`push`, which Node calls with all that arrives",
    of: "a stream of HTTP/2, a socket of Node",
    where: { "src/lib/node-internals/node-sockets.ts": ["replacePush"] },
    why: "a stream that is reset without an error code ends like a complete one",
    tests: ["test/security/http2-requests.test.ts", "test/upstream/http2-pool.test.ts"],
  },
  {
    part: "`kHandle`, the native object of a stream and of its session",
    of: "Node's HTTP/2",
    where: { "src/lib/node-internals/http2-handles.ts": ["kHandle"] },
    why: "a session that is collected before a stream with invalid fields aborts the process",
    tests: ["test/slow/security/http2-fields-of-cut-streams.test.ts"],
  },
  {
    part: "`push`, which Node calls with each piece of a body",
    of: "`IncomingMessage` of Node",
    where: { "src/server/listener/create-server.ts": ["BoundedRequest"] },
    why: "`highWaterMark` bounds bytes, but not the number of chunks",
    tests: ["test/server/bounded-request.test.ts"],
  },
  {
    part: "`gc`",
    of: "V8",
    where: { "src/lib/node-internals/node-sockets.ts": ["garbageCollector"] },
    why: "nothing else starts a scavenge",
    tests: ["test/upstream/backend-garbage.test.ts"],
  },
  {
    part: "flags set while Node runs, and the flags of the first line",
    of: "V8",
    where: { "src/app/threads/thread-memory.ts": ["keepThreadsSmall"], "src/entry.ts": ["node"] },
    why: "`resourceLimits` of a thread yield to flags, and have no counterpart of most of these",
    tests: ["test/ground/private-parts.test.ts", "test/app/thread-memory.test.ts"],
  },
  {
    part: "`destroySoon`, which Node calls after the last response",
    of: "a socket of Node",
    where: { "src/server/listener/discard-body.ts": ["useLingeringClose"] },
    why: "by default Node closes at once, which resets a connection with unread data",
    tests: ["test/security/pipelining-after-refusal.test.ts"],
  },
  {
    part: "`assignSocket`, and `ServerResponse` as a class with a constructor",
    of: "Node",
    where: {
      "src/server/request/tracked-response.ts": ["assignSocket"],
      "src/server/listener/listen.ts": ["assignSocket"],
    },
    why: "Node gives no response to a request for an upgrade, and no event when a pipelined one may be written",
    tests: [
      "test/security/other-upgrades.test.ts",
      "test/security/pipelining-without-reading.test.ts",
    ],
  },
  {
    part: "`detachSocket`",
    of: "`ServerResponse` of Node",
    where: { "src/upstream/websocket/websocket.ts": ["detachSocket"] },
    why: "a WebSocket takes the connection over",
    tests: ["test/upstream/switch-protocols.test.ts"],
  },
  {
    part: "`IncomingMessage` as a class with a constructor, `path` after the request was created",
    of: "Node",
    where: { "src/upstream/websocket/websocket.ts": ["IncomingMessage"] },
    why: "`http-proxy-3` takes a message, and drops an empty query from its path",
    tests: ["test/flows/websocket.test.ts"],
  },
  {
    part: "`socket` as a property that can be redefined",
    of: "`IncomingMessage` of Node",
    where: { "src/server/admin/explain-page.ts": ["readHead"] },
    why: "`explain` parses a head without a connection",
    tests: ["test/flows/explain.test.ts"],
  },
  {
    part: "`parser` of a connection, and its class",
    of: "Node's HTTP server",
    where: { "src/upstream/http1/response-parser.ts": ["nodeParserClass"] },
    why: "Node does not export llhttp. `serve` refuses to start on a Node with another parser",
    tests: ["test/upstream/connection-pools.test.ts"],
  },
  {
    part: "error codes of llhttp (`HPE_…`)",
    of: "Node",
    where: { "src/server/listener/client-error.ts": ["REASONS"] },
    why: "the documentation names few of them",
    tests: ["test/security/parser-refusals.test.ts"],
  },
  {
    part: "error codes of OpenSSL (`ERR_SSL_…`)",
    of: "Node",
    where: { "src/server/listener/client-error.ts": ["HTTP_IN_THE_CLEAR"] },
    why: "the documentation does not name them",
    tests: ["test/security/plain-http-on-the-tls-port.test.ts"],
  },
  {
    part: "names in `process.getActiveResourcesInfo()`",
    of: "Node",
    where: { "src/cli/serving/serve.ts": ["POOL_WORK"] },
    why: "nothing else says what `process.exit` would wait for",
    tests: ["test/cli/last-exit.test.ts"],
  },
  {
    part: "`getForPromString`",
    of: "`prom-client`",
    where: { "src/observe/metrics/event-metrics.ts": ["getForPromString"] },
    why: "its own histogram hashes and checks the labels of every observation",
    tests: ["test/observe/metrics.test.ts"],
  },
  {
    part: "`attachListeners`, and the event `authenticationCleartextPassword`",
    of: "`pg`",
    where: {
      "src/lib/postgres/postgres-pool.ts": ["attachListeners", "authenticationCleartextPassword"],
    },
    why: "its listener of `data` throws, takes responses of any size, and sends the password to a server without TLS",
    tests: ["test/credentials/hostile-postgres.test.ts"],
  },
  {
    part: "`BufferReader`, with `buffer` and `offset`",
    of: "`pg-protocol`",
    where: { "src/lib/postgres/postgres-pool.ts": ["BufferReader"] },
    why: "it reads an unterminated error message forever",
    tests: ["test/credentials/hostile-postgres.test.ts"],
  },
];

const listed = new Set(PARTS.flatMap(({ where }) => Object.keys(where)));
const sources = globSync("{src,tools}/**/*.ts", { cwd: ROOT }).map((file) => ({
  file,
  // Comments may name what they please.
  text: readFileSync(join(ROOT, file), "utf8").replaceAll(/\/\*\*.*?\*\/|\/\/ .*$/gms, ""),
}));

test.each(PARTS)("$part of $of", ({ where, tests }) => {
  const places = Object.entries(where);
  expect(places).not.toEqual([]);
  for (const [file, symbols] of places) {
    const text = readFileSync(join(ROOT, file), "utf8");
    expect(symbols.filter((symbol) => !new RegExp(String.raw`\b${symbol}\b`).test(text))).toEqual(
      [],
    );
  }
  expect(tests).not.toEqual([]);
  expect(tests.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

/** How the source can reach for what others keep to themselves, each with an example. */
const REACHES: readonly (readonly [reach: RegExp, example: string])[] = [
  [/(?<!\b(?:this|super))\??\._[a-z]\w*/, "socket._handle.readStop();"],
  [/["']_[a-z]\w*["'](?: in |\])/, 'if ("_parent" in socket) use(socket["_parent"]);'],
  [/\bReflect\.(?:get|set|defineProperty)\(/, 'Reflect.get(connection, "parser")'],
  [/\bObject\.defineProper(?:ty|ties)\(/, 'Object.defineProperty(socket, "remoteAddress", {})'],
  [/\bObject\.assign\((?!new\b)[a-z]\w*, (?!\{ \[Symbol)/, "Object.assign(server, options)"],
  [/\.(?:rawL|l)isteners\(/, 'sent.listeners("upgrade")[0]'],
  [/\b(?:setFlagsFromString|runInNewContext|getActiveResourcesInfo)\b/, "setFlagsFromString(flag)"],
  [/\b(?:internalBinding|getOwnPropertySymbols)\b|process\.binding/, "internalBinding('util')"],
  [
    /(?:from|import\() ?"(?:@[\w-]+\/)?[\w-]+\/(?:lib|dist|built?|src|cjs|esm|internal)\//,
    'import x from "ioredis/built/connectors/index.js";',
  ],
  [
    /(?<!\bthis)\.(?:push|read|write|end|emit|destroy|destroySoon|attachListeners) = /,
    "socket.destroySoon = () => undefined;",
  ],
  [/\bnew (?:IncomingMessage|ServerResponse)\(/, "new IncomingMessage(socket)"],
  [/\bextends (?:IncomingMessage|ServerResponse)\b/, "class Mine extends ServerResponse {"],
  [/[.?]\.?(?:assign|detach)Socket\b|override \w+Socket\b/, "response.assignSocket(socket);"],
  [/\b(?:getForPromString|attachListeners)\b/, "registry.getForPromString()"],
  [/\bERR_SSL_[A-Z]/, 'error.code === "ERR_SSL_HTTP_REQUEST"'],
  [/@ts-(?:expect-error|ignore|nocheck)/, "/* @ts-ignore */"],
];

it.each(REACHES)("nothing that is not listed has %s", (reach, example) => {
  expect(reach.test(example)).toBe(true);
  const found = sources.filter(({ text }) => reach.test(text)).map(({ file }) => file);
  expect(found.filter((file) => !listed.has(file))).toEqual([]);
});

it("replaces no method of a prototype that is not listed", () => {
  const found = sources.filter(({ text }) =>
    [...text.matchAll(/\b([A-Z]\w*)\.prototype\b/g)].some(
      ([, name]) => !new RegExp(String.raw`\bclass ${name}\b`).test(text),
    ),
  );
  expect(found.map(({ file }) => file).filter((file) => !listed.has(file))).toEqual([]);
});

/** V8 ignores a flag that it does not know, with no more than a line on standard error. */
it("V8 knows all flags", () => {
  const started = ["src/entry.ts", "bin/sallyport", "Dockerfile"].flatMap((file) => {
    const lines = readFileSync(join(ROOT, file), "utf8").split("\n");
    return lines.filter((line) => line.includes("--max-semi-space-size"));
  });
  expect(started).toHaveLength(3);
  const set = sources.flatMap(({ text }) =>
    [...text.matchAll(/setFlagsFromString\(["`]([^"`]*)/g)].map(([, flag = ""]) => flag),
  );
  expect(set.length).toBeGreaterThan(3);
  const named = [...started, ...set].flatMap((line) =>
    [...line.matchAll(/--(?:no-)?([a-z0-9-]+)/g)].map(([, name = ""]) => name),
  );
  const known = execFileSync(process.execPath, ["--v8-options"], { encoding: "utf8" });
  // These are Node's own: it refuses to start with one that it does not know.
  const ofNode = new Set(["v8-pool-size", "disable-sigusr1"]);
  const unknown = named.filter((name) => !ofNode.has(name) && !known.includes(`--${name} (`));
  expect(unknown).toEqual([]);
});
