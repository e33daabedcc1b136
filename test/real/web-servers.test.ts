/** Sallyport in front of common servers: identity, redirects, cookies, ranges, conditional requests, errors. */
import { chmod } from "node:fs/promises";
import { createServer } from "node:http";
import { basename } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { listening } from "../support/listening.ts";
import { missing } from "../support/program.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { startWebServer, WEB_SERVERS } from "./web-servers.ts";

describe.each(Object.entries(WEB_SERVERS))("in front of %s", (name, server) => {
  const reason = missing(basename(server.program));
  const stack = new AsyncDisposableStack();
  let gate: Sallyport;
  beforeAll(async () => {
    if (reason !== undefined) return;
    const directory = stack.use(await temporaryDirectory());
    // When started by root, some run as another user.
    await chmod(directory.path, 0o755);
    const target = await startWebServer(stack, server, directory);
    const rewrite = { stripPrefix: "/shop" };
    const routes = [
      { name: "shop", path: "/shop", upstream: "app", rewrite },
      {
        name: "target",
        path: "/target",
        upstream: "app",
        rewrite: { stripPrefix: "/target" },
        hostHeader: "target",
      },
    ];
    gate = stack.use(await startSallyport({ target, config: { routes } }));
  });
  afterAll(() => stack.disposeAsync());
  const get = (path: string, headers: Record<string, string> = {}) =>
    ask(gate, path, { token: gate.token, headers: { host: "shop.test", ...headers } });

  it.skipIf(reason !== undefined)(
    `passes the identity, but not the token ${reason ?? ""}`,
    async () => {
      expect((await ask(gate, "/shop/whoami")).status).toBe(401);
      const forged = { "x-auth-subject": "root", x_auth_subject: "root" };
      expect(await get("/shop/whoami", forged)).toMatchObject({
        status: 200,
        body: "GET alice []",
      });
    },
  );

  it.skipIf(reason !== undefined)("maps redirects and cookies back to the prefix", async () => {
    for (const prefix of ["/shop", "/target"]) {
      const { status, headers } = await get(`${prefix}/old`);
      expect(status).toBe(302);
      const location = new URL(headers.location ?? "", "https://shop.test");
      expect([location.host, location.pathname]).toEqual(["shop.test", `${prefix}/new`]);
      expect(headers["set-cookie"]?.join()).toMatch(new RegExp(`^seen=1; Path=${prefix}/?$`, "i"));
    }
  });

  it.skipIf(reason !== undefined)("serves ranges and conditional requests", async () => {
    const whole = await get("/shop/file.txt");
    expect([whole.status, whole.body.length]).toEqual([200, 10_240]);
    const part = await get("/shop/file.txt", { range: "bytes=5-9" });
    expect([part.status, part.body]).toEqual([206, "56789"]);
    const { etag = "" } = whole.headers;
    expect(etag, name).not.toBe("");
    expect((await get("/shop/file.txt", { "if-none-match": etag })).status).toBe(304);
    const head = await ask(gate, "/shop/file.txt", { method: "HEAD", token: gate.token });
    expect([head.status, head.headers["content-length"]]).toEqual([200, "10240"]);
  });

  it.skipIf(reason !== undefined)("passes its errors unchanged", async () => {
    const { status, headers, body } = await get("/shop/nowhere");
    expect([status, headers["proxy-status"]]).toEqual([404, undefined]);
    expect(body).not.toContain('"success"');
  });
});

/**
 * Behaves like Spring and other servlet containers: absolute redirects with their own port, and a session in the path.
 */
describe("in front of a servlet container", () => {
  const stack = new AsyncDisposableStack();
  let gate: Sallyport;
  beforeAll(async () => {
    const container = createServer((request, response) => {
      const { host = "", "x-forwarded-host": asked = host } = request.headers;
      const [path = ""] = (request.url ?? "").split("?");
      if (path === "/login") {
        const session = "JSESSIONID=1A2B; Path=/; HttpOnly";
        const location = `http://${host}/welcome;jsessionid=1A2B?from=${String(asked)}`;
        response.writeHead(302, { Location: location, "Set-Cookie": session }).end();
      } else response.end(request.url);
    });
    const { url: target } = stack.use(await listening(container));
    const rewrite = { stripPrefix: "/shop" };
    const row = { path: "/shop", upstream: "app", rewrite, paths: "asSent" };
    const routes = [
      { ...row, name: "own", hosts: ["own.test"], hostHeader: "target" },
      { ...row, name: "client" },
    ];
    gate = stack.use(await startSallyport({ target, config: { routes } }));
  });
  afterAll(() => stack.disposeAsync());

  it.each(["own.test", "shop.test", "shop.test:8443"])(
    "its absolute redirects work for the host %s, with the session in the path",
    async (host) => {
      const get = (path: string) => ask(gate, path, { token: gate.token, headers: { host } });
      const { status, headers } = await get("/shop/login");
      expect(status).toBe(302);
      expect(headers["set-cookie"]?.join()).toMatch(/^JSESSIONID=1A2B; Path=\/shop\/?; HttpOnly$/i);
      const location = new URL(headers.location ?? "", `https://${host}`);
      expect(location.host).toBe(host);
      expect(location.pathname).toBe("/shop/welcome;jsessionid=1A2B");
      expect((await get(location.pathname)).body).toBe("/welcome;jsessionid=1A2B");
    },
  );
});
