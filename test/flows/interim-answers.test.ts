/** Interim responses of a backend (RFC 9110 §15.2): all but 103 are skipped, and a flood of them is cut off. */
import { describe, expect, it } from "vitest";
import { expectEnvelope } from "../support/envelope.ts";
import { useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const interim = (status: string, ...fields: string[]): string =>
  request([`HTTP/1.1 ${status}`, ...fields]);
const CONTINUE = interim("100 Continue");

const INTERIM: Readonly<Record<string, string>> = {
  "100": CONTINUE,
  "100-three-times": CONTINUE.repeat(3),
  "100-without-phrase": interim("100"),
  "100-with-fields": interim("100 Continue", "X-A: 1", "Connection: keep-alive", "Date: today"),
  "100-and-102": CONTINUE + interim("102 Processing") + CONTINUE,
  "102": interim("102 Processing"),
  "110": interim("110 Odd", "X-Progress: 50%"),
  "199": interim("199 Odd"),
};

const script: RawScript = ({ startLine }) => {
  const [, name = "", dribbled] = /\/public\/([a-z0-9-]+)(\?dribbled)?/.exec(startLine) ?? [];
  if (name === "flood") return { write: CONTINUE.repeat(17) + OK };
  if (name === "endless") return { write: CONTINUE.repeat(10_000) };
  if (name === "switch") return { write: interim("101 Switching Protocols") + OK };
  if (name === "head") return { write: CONTINUE + OK.replace("ok", "") };
  const write = (INTERIM[name] ?? "") + OK;
  return dribbled === undefined ? { write } : { write, everyMs: 1 };
};
const get = (path: string): string => request([`GET /public/${path} HTTP/1.1`, "Host: localhost"]);

describe("Sallyport", () => {
  const standing = useSallyport(script, { withoutToken: true });

  it.each(Object.keys(INTERIM))("skips %s", async (name) => {
    const { gate, backend } = standing();
    const before = backend.connections.length;
    const { responses } = await exchange(gate, get(name) + get(name), { responses: 2 });
    expect(responses.map(({ status, body }) => [status, body])).toEqual([
      [200, "ok"],
      [200, "ok"],
    ]);
    expect(backend.connections.length, "the connection is reused").toBeLessThanOrEqual(before + 1);
  });

  it.each(["100-with-fields", "100-and-102"])("skips %s, byte by byte", async (name) => {
    const { responses } = await exchange(standing().gate, get(`${name}?dribbled`));
    expect(responses.map(({ status, body }) => [status, body])).toEqual([[200, "ok"]]);
  });

  it("skips 100 before the response to HEAD", async () => {
    const head = get("head").replace("GET", "HEAD");
    const { responses } = await exchange(standing().gate, head, { head: true });
    expect(responses.map(({ status }) => status)).toEqual([200]);
    expect(responses[0]?.header("content-length")).toBe("2");
  });

  it("skips 100 while the body is sent", async () => {
    const { gate, backend } = standing();
    const fields = ["POST /public/100 HTTP/1.1", "Host: localhost", "Content-Length: 70000"];
    const { responses } = await exchange(gate, request(fields, "x".repeat(70_000)));
    expect(responses.map(({ status, body }) => [status, body])).toEqual([[200, "ok"]]);
    expect(backend.requests()[0]?.body.length).toBe(70_000);
  });

  it("sends only one 100 to a client that expects it", async () => {
    const { gate, backend } = standing();
    const head = request([
      ...["POST /public/100 HTTP/1.1", "Host: localhost", "Content-Length: 2"],
      "Expect: 100-continue",
    ]);
    let isContinued = false;
    const { responses } = await exchange(gate, head, {
      onBytes(raw, write) {
        if (!isContinued && raw.includes("100 Continue")) write("hi");
        isContinued ||= raw.includes("100 Continue");
      },
    });
    expect(responses.map(({ status }) => status)).toEqual([100, 200]);
    expect(backend.requests()[0]?.body.toString()).toBe("hi");
  });

  it.each(["flood", "endless"])("answers a %s of them with 502", async (name) => {
    const { gate } = standing();
    const { last, responses } = await exchange(gate, get(name));
    expect(responses).toHaveLength(1);
    expectEnvelope(last, 502);
    expect((await exchange(gate, get("100"))).last.body).toBe("ok");
  });

  it("answers an unsolicited 101 with 502", async () => {
    const { last } = await exchange(standing().gate, get("switch"));
    expectEnvelope(last, 502);
  });
});
