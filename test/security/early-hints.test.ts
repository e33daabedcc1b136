/**
 * Early hints that block everything. Node checks the `Link` of a 103 with a regular expression that takes twice as
 * long for each further parameter if the end of the value is invalid: 135 bytes block the event loop for minutes, and
 * with it every client, `/livez`, and the end of the process. A backend can send such a field, and so can a client
 * whose text the backend inserts. The other attack is a 103 to an HTTP/1.0 client, which takes it for the answer, and
 * the answer for that to the next request (RFC 9110 §15.2).
 */
import { describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { scrape } from "../support/scrape.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const early = (...fields: string[]): string => request(["HTTP/1.1 103 Early Hints", ...fields]);
const STYLE = "</style.css>; rel=preload; as=style";
const SCRIPT = "</app.js>; rel=preload; as=script";

const INTERIM: Readonly<Record<string, string>> = {
  "wrong-at-the-end": early(`Link: <x>${"; a=b".repeat(40)} "`),
  "quoted-and-wrong": early(`Link: <x>${'; a="b"'.repeat(400)}"`),
  "nothing-but-blanks": early(`Link: <x>${" ".repeat(20_000)};`),
  "many-targets": early(`Link: ${"<".repeat(20_000)}`),
  "many-links": early(...Array.from({ length: 2_000 }, () => "Link: <x>;a")),
  twice: early(`Link: ${STYLE}`) + early(`Link: ${SCRIPT}`),
  "one-list": early(`Link: ${STYLE}, ${SCRIPT}`),
  "two-fields": early(`Link: ${STYLE}`, `Link: ${SCRIPT}`),
  others: early(
    ...[`Link: ${STYLE}`, "Content-Security-Policy: style-src 'self'", "X-Name: \xe9\xc3\xa9"],
    ...["Connection: X-Hop", "X-Hop: 1", "Content-Length: 3"],
    ...["Trailer: X-Sum", "X-Request-Id: forged"],
  ),
  bare: early(),
};

const script: RawScript = ({ startLine }) => {
  const name = /\/public\/([a-z0-9-]+)/.exec(startLine)?.[1] ?? "";
  return { write: (INTERIM[name] ?? "") + OK };
};
const get = (name: string, version = "1.1"): string =>
  request([`GET /public/${name} HTTP/${version}`, "Host: localhost"]);

describe("Sallyport", () => {
  const standing = useSallyport(script, { withoutToken: true });

  it.each([
    ...["wrong-at-the-end", "quoted-and-wrong", "nothing-but-blanks", "many-targets"],
    "many-links",
  ])("serves everybody while a backend hints %s", async (name) => {
    const { gate } = standing();
    const hinted = exchange(gate, get(name));
    expect((await ask(gate, "/public/next")).status).toBe(200);
    expect((await scrape(gate)).series.length).toBeGreaterThan(0);
    expect((await hinted).last.body).toBe("ok");
  });

  it.each([
    ["twice", [STYLE, SCRIPT]],
    ["one-list", [`${STYLE}, ${SCRIPT}`]],
    ["two-fields", [`${STYLE} | ${SCRIPT}`]],
  ])("passes the links of %s before the answer", async (name, links) => {
    const { responses } = await exchange(standing().gate, get(name));
    expect(responses.map(({ status }) => status)).toEqual([...links.map(() => 103), 200]);
    expect(responses.slice(0, -1).map((hints) => hints.header("link"))).toEqual(links);
  });

  it("passes on other fields byte for byte, except those about one connection", async () => {
    const { responses } = await exchange(standing().gate, get("others"));
    expect(responses[0]?.headers).toEqual([
      ["link", STYLE],
      ["content-security-policy", "style-src 'self'"],
      ["x-name", "\xe9\xc3\xa9"],
    ]);
  });

  it("does not pass on an empty 103", async () => {
    const { responses } = await exchange(standing().gate, get("bare"));
    expect(responses.map(({ status }) => status)).toEqual([200]);
  });

  it("sends only the answer to HTTP/1.0 clients", async () => {
    const { raw, last } = await exchange(standing().gate, get("twice", "1.0"));
    expect(raw).toMatch(/^HTTP\/1\.1 200 /);
    expect(last.body).toBe("ok");
  });
});
