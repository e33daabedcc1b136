/**
 * For someone who forwards the admin port to their own machine, the loopback is the admin's peer, and so is every web
 * page that they open. A page can send a POST there without permission, and drain the pod. With DNS rebinding, a name
 * of the attacker that resolves to 127.0.0.1 after the page was loaded, the page even has the same origin for the
 * browser and can read the answers: what would happen to which request, and what changed in the configuration.
 */
import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { command } from "../cli/command.ts";
import { fieldsOf } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { listening } from "../support/listening.ts";
import { exchange, type Peer, request } from "../support/raw-client.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";

const ASKED = [
  "GET /-/drain",
  "HEAD /-/drain",
  "POST /-/drain",
  "GET /-/explain?url=/",
  "POST /-/reload",
  "GET /-/config",
  "GET /-/openapi",
];
/** The preflight that a browser sends before a request that is not simple. */
const PREFLIGHTS = ["OPTIONS /-/drain", "OPTIONS /-/explain?url=/", "OPTIONS /-/reload"];
const FOR_EVERYBODY = [
  "GET /metrics",
  "GET /livez",
  "GET /readyz",
  "GET /startupz",
  "GET /.well-known/jwks.json",
];

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({ withoutToken: true, target: backend.url });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

async function askedAt(peer: Peer, line: string, ...fields: string[]) {
  const bytes = request([`${line} HTTP/1.1`, ...fields]);
  return (await exchange(peer, bytes, { head: line.startsWith("HEAD") })).last;
}

const asked = (line: string, ...fields: string[]) =>
  askedAt({ port: gate.adminPort }, line, ...fields);

const statusOf = async (line: string, ...fields: string[]) => (await asked(line, ...fields)).status;

const here = (): string => `Host: 127.0.0.1:${gate.adminPort}`;

async function nothingBegan(): Promise<void> {
  expect(fieldsOf(await asked("GET /-/drain", here()))).toMatchObject({
    state: "serving",
    success: true,
  });
  const begun = ["draining", "the configuration was reloaded"];
  expect(gate.log().filter(({ msg }) => begun.includes(String(msg)))).toEqual([]);
}

describe("a page of another site", () => {
  it.each([
    { fields: ["Origin: https://evil.example"] },
    { fields: ["Origin: null"] },
    { fields: ["Origin:"] },
    { fields: ["Origin: http://localhost:9464"] },
    { fields: ["Sec-Fetch-Site: cross-site"] },
    { fields: ["Sec-Fetch-Site: same-site"] },
    { fields: ["Sec-Fetch-Site: same-origin"] },
    { fields: ["Sec-Fetch-Site: none", "Origin: https://evil.example"] },
    { fields: ["Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"] },
  ])("gets and changes nothing: $fields", async ({ fields }) => {
    for (const line of [...ASKED, ...PREFLIGHTS]) {
      expect([line, await statusOf(line, here(), ...fields)]).toEqual([line, 403]);
    }
    await nothingBegan();
  });

  it("gets an envelope that says so, and no permission to read it", async () => {
    const last = await asked("POST /-/reload", here(), "Origin: https://evil.example");
    expect(fieldsOf(last)).toEqual({
      id: expect.any(Number),
      message: "A web page may not ask for this",
      success: false,
    });
    expect(last.headers.filter(([name]) => /^access-control-/i.test(name))).toEqual([]);
  });
});

/** With port forwards, one address belongs to one server after the other. */
describe("a page that another server left at the same address", () => {
  const opened = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];

  it("gets and changes nothing in a window that it opens", async () => {
    for (const line of [...ASKED, "GET /-/status", "GET /-/upstreams", "GET /-/revoked?jti=x"]) {
      const status = await statusOf(line, here(), "Sec-Fetch-Site: same-origin", ...opened);
      expect([line, status]).toEqual([line, 403]);
    }
    await nothingBegan();
  });

  it("loses the window that shows the status page, whose own links work", async () => {
    const last = await asked("GET /-/", here(), "Sec-Fetch-Site: same-origin", ...opened);
    expect(last.status).toBe(200);
    expect(last.header("cross-origin-opener-policy")).toBe("noopener-allow-popups");
  });
});

describe("a name that was made to resolve to the loopback", () => {
  it.each([
    "evil.example",
    "evil.example:9464",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evil-localhost",
    "127.0.0.1:9464.evil.example",
    "127.0.0.1, evil.example",
    "user@127.0.0.1",
    "[::1].evil.example",
    "[evil.example]",
    "localhost.",
    "2130706433",
    "::1",
    "",
  ])("gets and changes nothing: %j", async (host) => {
    for (const line of [...ASKED, ...PREFLIGHTS]) {
      expect([line, await statusOf(line, `Host: ${host}`)]).toEqual([line, 403]);
    }
    await nothingBegan();
  });

  it("gets an explanation of how to connect", async () => {
    const { message } = fieldsOf(await asked("GET /-/explain?url=/", "Host: evil.example"));
    expect(message).toBe("Ask for this by address or as localhost, not by another name");
  });
});

describe("a client other than a page", () => {
  it.each(["127.0.0.1", "localhost", "localhost:9464", "LOCALHOST:9464", "[::1]", "[::1]:9464"])(
    "is answered with Host %s, as from curl and from the address bar of a browser",
    async (host) => {
      for (const line of ["GET /-/drain", "HEAD /-/drain", "GET /-/explain?url=/"]) {
        expect(await statusOf(line, `Host: ${host}`)).toBe(200);
        expect(await statusOf(line, `Host: ${host}`, "Sec-Fetch-Site: none")).toBe(200);
      }
    },
  );

  it("is answered without a Host in HTTP/1.0", async () => {
    const bytes = request(["GET /-/drain HTTP/1.0"]);
    const { last } = await exchange({ port: gate.adminPort }, bytes);
    expect(last.status).toBe(200);
  });

  it("changes nothing from the browser's address bar", async () => {
    expect(await statusOf("POST /-/drain", here(), "Sec-Fetch-Site: none")).toBe(403);
    await nothingBegan();
  });

  it("everyone gets metrics and health, under any name", async () => {
    for (const line of FOR_EVERYBODY) {
      expect(await statusOf(line, "Host: orders.shop.svc:9464")).toBe(200);
      expect(await statusOf(line, here(), "Origin: https://grafana.example")).toBe(200);
    }
  });
});

it("sallyport drain works, also with localhost", async () => {
  await using one = await startSallyport({ withoutToken: true, target: backend.url });
  const url = `http://localhost:${one.adminPort}/-/drain`;
  expect(await command(["drain", "--url", url])).toEqual({ code: 0, out: "drained\n", err: "" });
});

describe("an admin port that checks only the address", () => {
  it("obeys a page, under its own name and under one that resolves to the loopback", async () => {
    let drains = 0;
    const server = createServer(({ method, socket }, response) => {
      const near = socket.remoteAddress === "127.0.0.1";
      if (near && method === "POST") drains += 1;
      response.writeHead(near ? 200 : 403).end("what was asked for");
    });
    await using naive = await listening(server);
    const drain = (...fields: string[]) => askedAt(naive, "POST /-/drain", ...fields);
    expect((await drain("Host: 127.0.0.1", "Origin: https://evil.example")).status).toBe(200);
    expect((await drain("Host: 127.0.0.1", "Sec-Fetch-Site: cross-site")).status).toBe(200);
    expect((await drain("Host: evil.example")).status).toBe(200);
    expect(drains).toBe(3);
    const read = await askedAt(naive, "GET /-/explain?url=/", "Host: evil.example");
    expect([read.status, read.body]).toEqual([200, "what was asked for"]);
  });
});
