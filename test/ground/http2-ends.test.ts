/**
 * Only `src/lib/http/http2-ends.ts` ends HTTP/2 streams and sessions, because it leaves the callbacks of nghttp2 first. This
 * reads the source for any other place that does.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const SOURCES = join(import.meta.dirname, "../../src");
const PLACE = "lib/http/http2-ends.ts";

/** What a file names if it can reach a stream or session. */
const REACHES = /\bHttp2(?:Stream|Session)\b|(?:Client|Server)Http2|\bnode:http2\b|\bduplex\b/;
const ENDS =
  /([\w.#?]*?)\??\.(?:close|destroy|destroySoon|rstStream|sendTrailers|\[Symbol\.asyncDispose\])\(/g;
/** What else may be ended in such a file: the object itself, our responses, and what belongs to HTTP/1.1. */
const OTHERS = new Set([
  "this",
  "socket",
  "this.socket",
  "backend",
  "this.#backend",
  "handshake",
  "nowhere",
  "response",
  "message",
]);

/** The calls in a file that may end a stream or session. */
function endsIn(text: string): string[] {
  if (!REACHES.test(text)) return [];
  const code = text.replaceAll(/\/\*\*.*?\*\/|\/\/ .*$/gms, "");
  return [...code.matchAll(ENDS)]
    .filter(([, owner = ""]) => !OTHERS.has(owner))
    .map(([call]) => call);
}

const files = globSync("**/*.ts", { cwd: SOURCES, exclude: ["main.ts"] });
const read = (file: string): string => readFileSync(join(SOURCES, file), "utf8");

it("finds the place, and each way to end a stream elsewhere", () => {
  expect(endsIn(read(PLACE))).not.toEqual([]);
  for (const call of [
    ...["stream.close(8)", "this.#stream?.close(8)", "stream.destroy()", "end.duplex.destroy()"],
    ...["this.#stream.sendTrailers({})", "session.close()", "this.#session?.destroy()"],
  ]) {
    expect(endsIn(`import type { Http2Stream } from "node:http2";\n${call};`)).toHaveLength(1);
  }
});

it("leaves it to that module everywhere else", () => {
  const found = files.filter((file) => file !== PLACE).map((file) => [file, endsIn(read(file))]);
  expect(found.length).toBeGreaterThan(100);
  expect(found.filter(([, calls]) => calls?.length !== 0)).toEqual([]);
});
