/** The bytes of a header section pass unchanged in both directions, in any encoding: file names, reason phrases. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { expectEnvelope } from "../support/envelope.ts";
import { valuesOf } from "../support/http-reader.ts";
import { useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";

/** Latin-1 strings, so each character is one byte: 日本 in UTF-8, ä in UTF-8, and three bytes of Latin-1. */
const NAMES = { japanese: "\xe6\x97\xa5\xe6\x9c\xac", umlaut: "\xc3\xa4", latin: "\xe4\xff\x80" };
const dispositionOf = (name: string): string => `attachment; filename="${name}.txt"`;

/** The rest of each response. `D` marks the place of the Content-Disposition field. */
const FORMS: Readonly<Record<string, { head: readonly string[]; body: string }>> = {
  "length-first": { head: ["HTTP/1.1 200 OK", "Content-Length: 2", "D"], body: "ok" },
  "length-last": { head: ["HTTP/1.1 200 OK", "D", "Content-Length: 2"], body: "ok" },
  "length-between": { head: ["HTTP/1.1 200 OK", "D", "Content-Length: 2", "D"], body: "ok" },
  chunked: { head: ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "D"], body: chunked("ok") },
  head: { head: ["HTTP/1.1 200 OK", "Content-Length: 2", "D"], body: "" },
  "not-modified": { head: ["HTTP/1.1 304 Not Modified", "Content-Length: 2", "D"], body: "" },
  "no-content": { head: ["HTTP/1.1 204 No Content", "D"], body: "" },
};

const PHRASES = {
  latin: "Fine\xe4",
  utf8: "d\xc3\xa9j\xc3\xa0 vu",
  japanese: "\xe6\x97\xa5",
  broken: "\xc3\x28\x80\xff",
  tab: "a\tb",
  empty: "",
  long: "long ".repeat(1_000).trim(),
};

function isKey<T extends object>(map: T, key: string): key is Extract<keyof T, string> {
  return Object.hasOwn(map, key);
}

const script: RawScript = ({ startLine, headers }) => {
  const [, kind = "", form = "", name = ""] =
    /\/public\/([a-z0-9-]+)\/([a-z0-9-]+)\/([a-z0-9-]*)/.exec(startLine) ?? [];
  if (kind === "file" && isKey(NAMES, name)) {
    const { head = [], body = "" } = FORMS[form] ?? {};
    const field = `Content-Disposition: ${dispositionOf(NAMES[name])}`;
    return { write: request([...head.map((line) => (line === "D" ? field : line))], body) };
  }
  if (kind === "phrase" && isKey(PHRASES, name)) {
    const fields = [`X-Name: ${NAMES.latin}`, "Content-Length: 2"];
    const write = request([`HTTP/1.1 ${form} ${PHRASES[name]}`, ...fields], "ok");
    return startLine.includes("dribbled") ? { write, everyMs: 1 } : { write };
  }
  if (kind === "line") return { write: `${LINES[form] ?? ""}\r\nContent-Length: 2\r\n\r\nok` };
  if (kind === "trailer") {
    const head = [`HTTP/1.1 ${form} Found It`, "Transfer-Encoding: chunked", "Trailer: X-Sum"];
    const none = form !== "200" || startLine.startsWith("HEAD");
    return { write: request(head, none ? "" : chunked("ok", ["X-Sum: 1"])) };
  }
  if (kind === "websocket") return { write: switched(valuesOf(headers, "sec-websocket-key")[0]) };
  return { write: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" };
};

/** Invalid status lines (RFC 9112 §2.2, §4). */
const LINES: Readonly<Record<string, string>> = {
  "cr-in-phrase": "HTTP/1.1 200 O\rK",
  "cr-before-field": "HTTP/1.1 200 OK\rX-A: b",
  "cr-for-blank": "HTTP/1.1 200\rOK",
  "two-cr": "HTTP/1.1 200 OK\r",
  "lf-in-phrase": "HTTP/1.1 200 OK\nX-A: b",
  "nul-in-phrase": "HTTP/1.1 200 O\0K",
  "del-in-phrase": "HTTP/1.1 200 O\x7fK",
};

function switched(key = ""): string {
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
  return request([
    ...["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"],
    `Sec-WebSocket-Accept: ${accept.digest("base64")}`,
    ...[`Content-Disposition: ${dispositionOf(NAMES.japanese)}`, `X-Name: ${NAMES.latin}`],
  ]);
}

const get = (path: string, ...fields: string[]): string =>
  request([`GET /public/${path} HTTP/1.1`, "Host: localhost", ...fields]);
const WEBSOCKET = [
  ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

describe("Sallyport", () => {
  const standing = useSallyport(script, {
    withoutToken: true,
    config: {
      routes: [
        {
          name: "counted",
          path: "/public/file/length-first/",
          auth: "none",
          upstream: "app",
          rateLimit: { by: "address", requests: 1000 },
        },
        { name: "public", path: "/public/", auth: "none", upstream: "app" },
      ],
    },
  });

  const files = Object.keys(FORMS).flatMap((form) =>
    Object.entries(NAMES).map(([name, bytes]) => [form, name, bytes] as const),
  );

  it.each(files)("passes Content-Disposition: %s, %s", async (form, name, bytes) => {
    const bodyless = form === "head";
    const sent = get(`file/${form}/${name}`).replace("GET", bodyless ? "HEAD" : "GET");
    const { last } = await exchange(standing().gate, sent, { head: bodyless });
    expect(last.status).toBeLessThan(400);
    const times = form === "length-between" ? 2 : 1;
    expect(valuesOf(lowered(last.headers), "content-disposition")).toEqual(
      Array.from({ length: times }, () => dispositionOf(bytes)),
    );
    expect(last.body).toBe(FORMS[form]?.body === "" ? "" : "ok");
  });

  it.each(Object.entries(PHRASES))("passes the reason phrase: %s", async (name, phrase) => {
    for (const suffix of ["", ...(phrase.length < 100 ? ["?dribbled"] : [])]) {
      const { raw, last } = await exchange(standing().gate, get(`phrase/299/${name}${suffix}`));
      expect(raw.slice(0, raw.indexOf("\r\n"))).toBe(`HTTP/1.1 299 ${phrase}`);
      expect([last.header("x-name"), last.body]).toEqual([NAMES.latin, "ok"]);
    }
  });

  it("passes the reason phrase of a backend that refuses a WebSocket", async () => {
    const { raw } = await exchange(standing().gate, get("phrase/403/latin", ...WEBSOCKET));
    expect(raw.slice(0, raw.indexOf("\r\n"))).toBe(`HTTP/1.1 403 ${PHRASES.latin}`);
  });

  it("passes the status and fields of a 101", async () => {
    const { gate } = standing();
    const { responses } = await exchange(gate, get("websocket/x/", ...WEBSOCKET), {
      timeoutMs: 500,
    });
    const [answer] = responses;
    expect([answer?.status, answer?.header("x-name")]).toEqual([101, NAMES.latin]);
    expect(answer?.header("content-disposition")).toBe(dispositionOf(NAMES.japanese));
  });

  it.each(["GET", "POST"])("passes the fields of a %s", async (method) => {
    const { gate, backend } = standing();
    const fields = Object.values(NAMES).map((bytes) => `X-Name: ${bytes}`);
    const disposition = `Content-Disposition: ${dispositionOf(NAMES.japanese)}`;
    const framing = method === "GET" ? [] : ["Content-Length: 2"];
    const lines = [`${method} /public/x HTTP/1.1`, "Host: localhost", ...framing, ...fields];
    await exchange(gate, request([...lines, disposition], method === "GET" ? "" : "hi"));
    const got = backend.requests()[0]?.headers ?? [];
    expect(valuesOf(lowered(got), "x-name")).toEqual(Object.values(NAMES));
    expect(valuesOf(lowered(got), "content-disposition")).toEqual([dispositionOf(NAMES.japanese)]);
  });

  it("passes the fields of a handshake", async () => {
    const { gate, backend } = standing();
    const fields = Object.values(NAMES).map((bytes) => `X-Name: ${bytes}`);
    await exchange(gate, get("websocket/x/", ...WEBSOCKET, ...fields), { timeoutMs: 500 });
    const got = backend.requests()[0]?.headers ?? [];
    expect(valuesOf(lowered(got), "x-name")).toEqual(Object.values(NAMES));
  });

  it.each(Object.keys(LINES))("answers %s in a status line with 502", async (name) => {
    for (const fields of [[], WEBSOCKET]) {
      const { last, raw } = await exchange(standing().gate, get(`line/${name}/`, ...fields));
      expectEnvelope(last, 502);
      expect(raw).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n/);
    }
  });

  it.each([
    ["200 to HTTP/1.0", "200", "GET", "1.0", "ok"],
    ["200 to HEAD", "200", "HEAD", "1.1", ""],
    ["304", "304", "GET", "1.1", ""],
  ])(
    "omits a Trailer field when no trailers can follow: %s",
    async (_name, status, method, version, body) => {
      const bytes = request([
        `${method} /public/trailer/${status}/ HTTP/${version}`,
        "Host: localhost",
      ]);
      const options = { head: method === "HEAD", responses: version === "1.0" ? Infinity : 1 };
      const { raw, last } = await exchange(standing().gate, bytes, options);
      expect(raw).toMatch(new RegExp(`^HTTP/1\\.1 ${status} Found It\r\n`));
      expect([last.header("trailer"), last.body]).toEqual([undefined, body]);
    },
  );
});

function lowered(fields: readonly (readonly [string, string])[]): [string, string][] {
  return fields.map(([name, value]) => [name.toLowerCase(), value]);
}
