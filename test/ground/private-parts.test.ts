/** docs/development.md lists each private part of Node and of libraries that the source uses, and a test of each. */
import { execFileSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, test } from "vitest";
import { codesIn, readDocument, ROOT } from "../docs/markdown.ts";

const rows = readDocument("docs/development.md").rows("part", "where", "tests");

/** Every `file` (`symbol`, `symbol`) of a cell. */
function placesIn(cell = ""): { readonly file: string; readonly symbols: readonly string[] }[] {
  return [...cell.matchAll(/`(src\/[\w./-]+\.ts)` \(([^)]*)\)/g)].map(([, file = "", symbols]) => ({
    file,
    symbols: codesIn(symbols),
  }));
}

const listed = new Set(rows.flatMap((row) => placesIn(row["where"]).map(({ file }) => file)));
const sources = globSync("{src,tools}/**/*.ts", { cwd: ROOT }).map((file) => ({
  file,
  // Comments may name what they please.
  text: readFileSync(join(ROOT, file), "utf8").replaceAll(/\/\*\*.*?\*\/|\/\/ .*$/gms, ""),
}));

test.each(rows)("$part", (row) => {
  const places = placesIn(row["where"]);
  expect(places).not.toEqual([]);
  for (const { file, symbols } of places) {
    const text = readFileSync(join(ROOT, file), "utf8");
    expect(symbols.filter((symbol) => !new RegExp(String.raw`\b${symbol}\b`).test(text))).toEqual(
      [],
    );
  }
  const tests = codesIn(row["tests"]);
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
  [/\b(?:getForPromString|attachListeners|AbstractConnector)\b/, "registry.getForPromString()"],
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
