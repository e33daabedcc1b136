import { readFileSync } from "node:fs";
import fc from "fast-check";

/** A configuration as a user may have written it, with flags and environment variables. */
export interface WrittenConfiguration {
  readonly text: string;
  readonly encoding: "utf8" | "latin1";
  /** Values of `--set`. */
  readonly overrides: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const SHIPPED = readFileSync(new URL("../../config.yaml", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));

const SMALLEST = [
  "server: { tls: off }",
  "upstreams:",
  '  app: { targets: ["http://127.0.0.1:8080"] }',
  "routes:",
  "  - { name: public, path: /public/, auth: none, upstream: app }",
  "  - { name: rest, upstream: app }",
];

/** Values that are difficult for parsers of YAML, numbers, durations, sizes, addresses or patterns. */
const VALUES = [
  ...[
    "",
    "~",
    "null",
    "true",
    "no",
    "0",
    "-1",
    "1e400",
    ".nan",
    "0x1F",
    "0o17",
    "1_000",
    "[]",
    "{}",
  ],
  ...["[1, [2, {a: b}]]", "{ a: { b: { c: [] } } }", '"\\u0000"', '"\\uD800"', '"\\x1b[31m"', "''"],
  ...[
    "5",
    "5s",
    "-5s",
    "1h30m",
    "99999999999h",
    "0ms",
    "1.5s",
    "16KiB",
    "0B",
    "9999999TiB",
    "16 KiB",
  ],
  ...[
    "0.0.0.0:99999",
    ":::1",
    "[::1]:0",
    "127.0.0.1",
    "http://",
    "http://[",
    "https://a b",
    "ftp://a",
  ],
  ...[
    "unix:",
    "unix:/x",
    "http://a:b@c:1/d?e#f",
    "10.0.0.0/33",
    "::/0",
    "*.*.example.com",
    "/../",
    "//",
  ],
  ...[
    "${X}",
    "${X:-a}",
    "${X:?m}",
    "${file:/nonexistent}",
    "${",
    "${}",
    "$",
    "${X:-${Y}}",
    "&a [*a]",
  ],
  ...["&a b", "*a", "!!binary x", "!!set {a}", "!tag x", "|\n  a", ">-\n  b", "? a\n: b", "<<: *a"],
  ...[
    "__proto__",
    "constructor",
    "2026-11-20",
    "@",
    "`",
    "%",
    "- a",
    "a: b: c",
    "# x",
    "off",
    "files",
  ],
];

const KEYS = [
  ...["server", "listen", "tls", "certFile", "keyFile", "minVersion", "workers", "trustedProxies"],
  ...[
    "limits",
    "headerBytes",
    "bodyBytes",
    "connections",
    "timeouts",
    "header",
    "request",
    "drain",
  ],
  ...[
    "admin",
    "login",
    "throttle",
    "attempts",
    "within",
    "ban",
    "hashing",
    "users",
    "kind",
    "path",
  ],
  ...[
    "tokens",
    "issuer",
    "audience",
    "lifetime",
    "algorithm",
    "keys",
    "cache",
    "entries",
    "trusted",
  ],
  ...[
    "jwks",
    "url",
    "file",
    "algorithms",
    "clockSkew",
    "version",
    "text",
    "env",
    "upstream",
    "field",
  ],
  ...["identity", "headers", "subject", "groups", "routes", "name", "methods", "hosts", "require"],
  ...["any", "all", "auth", "exact", "rewrite", "stripPrefix", "addPrefix", "forwardAuthorization"],
  ...["upstreams", "app", "targets", "caFile", "connect", "response", "idle", "websocket", "log"],
  ...["level", "format", "selfSigned", "__proto__", "constructor", "toString", "", "0", "a b", "é"],
];

const value = fc.oneof(
  { arbitrary: fc.constantFrom(...VALUES), weight: 6 },
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom(...KEYS),
);
const key = fc.constantFrom(...KEYS);
const place = fc.nat(9_999);

type Change = (lines: readonly string[]) => readonly string[];

/** Returns a change of one line, chosen by a number from 0 to 9,999. */
function atLine(change: (line: string) => readonly string[]): (at: number) => Change {
  return (at) => (lines) => {
    const index = Math.floor((at * lines.length) / 10_000);
    return lines.toSpliced(index, 1, ...change(lines[index] ?? ""));
  };
}

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    arbitrary: fc
      .tuple(place, value)
      .map(([at, text]) =>
        atLine((line) => [line.replace(/(:\s*)[^:]*$/, (_, colon: string) => colon + text)])(at),
      ),
    weight: 4,
  },
  fc
    .tuple(place, key)
    .map(([at, name]) => atLine((line) => [line.replace(/[A-Za-z]+(?=:)/, () => name)])(at)),
  fc
    .tuple(place, key, value)
    .map(([at, name, text]) =>
      atLine((line) => [
        line,
        `${/^[\s-]*/.exec(line)?.[0].replaceAll("-", " ") ?? ""}${name}: ${text}`,
      ])(at),
    ),
  place.map(atLine(() => [])),
  place.map(atLine((line) => [line, line])),
  fc
    .tuple(place, fc.constantFrom(" ", "  ", "\t", "- ", "? ", "#"))
    .map(([at, indent]) => atLine((line) => [indent + line])(at)),
  fc.tuple(place, place, value).map(([at, column, text]) =>
    atLine((line) => {
      const from = Math.floor((column * (line.length + 1)) / 10_000);
      return [line.slice(0, from) + text + line.slice(from + 1)];
    })(at),
  ),
);

/** A tree of existing keys with any values; JSON is also YAML. */
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    value,
    fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.double()),
    fc.dictionary(key, tie("tree"), { maxKeys: 5 }),
    fc.array(tie("tree"), { maxLength: 3 }),
  ),
}));

const text = fc.oneof(
  {
    arbitrary: fc
      .tuple(fc.constantFrom(SHIPPED, SMALLEST), fc.array(change, { maxLength: 4 }))
      .map(([base, changes]) => {
        let lines: readonly string[] = base;
        for (const each of changes) lines = each(lines);
        return lines.join("\n");
      }),
    weight: 6,
  },
  fc.dictionary(key, tree, { maxKeys: 6 }).map((whole) => JSON.stringify(whole, undefined, 1)),
  fc.string({ unit: "binary" }),
);

/** Configurations, most of them almost valid. */
export const configurations: fc.Arbitrary<WrittenConfiguration> = fc.record({
  text,
  encoding: fc.constantFrom("utf8", "utf8", "utf8", "latin1"),
  overrides: fc.array(
    fc
      .tuple(fc.array(key, { minLength: 1, maxLength: 3 }), value)
      .map(([path, said]) => `${path.join(".")}=${said}`),
    { maxLength: 1 },
  ),
  env: fc
    .option(fc.tuple(fc.array(key, { minLength: 1, maxLength: 3 }), value), { freq: 2 })
    .map((said): Record<string, string> =>
      said === null ? {} : { [`SALLYPORT_${said[0].join("__").toUpperCase()}`]: said[1] },
    ),
});
