/**
 * A single-page application from another origin in Debian's Chromium: its script logs in, calls a route, and reports to
 * its own server what it could read. curl cannot test this, because it is the browser that blocks the requests.
 */
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startEchoBackend } from "../support/echo-backend.ts";
import { listening } from "../support/listening.ts";
import { missing, startProgram } from "../support/program.ts";
import { ALICE, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

const reason = missing("chromium");

/** Runs in the page. A blocked response is a TypeError. */
const SCRIPT = `
const tell = (result) => fetch("/result", { method: "POST", body: JSON.stringify(result) });
const attempt = async (path, options) => {
  try {
    const answer = await fetch(GATE + path, options);
    return { status: answer.status, id: answer.headers.get("x-request-id"), ...(await answer.json()) };
  } catch (error) {
    return { error: error.name };
  }
};
const json = { "content-type": "application/json" };
const login = (password) =>
  attempt("/api/authenticate", {
    method: "POST", headers: json, body: JSON.stringify({ username: "alice", password }),
  });
(async () => {
  const wrong = await login("wrong");
  const { token, ...right } = await login(PASSWORD);
  const bearer = { authorization: "Bearer " + token };
  await tell({
    wrong, right,
    put: await attempt("/orders/1", { method: "PUT", headers: { ...bearer, ...json }, body: "{}" }),
    version: await attempt("/api/v1/version", { headers: bearer }),
    anonymous: await attempt("/orders/1"),
    withCookies: await attempt("/orders/1", { headers: bearer, credentials: "include" }),
    otherHeader: await attempt("/orders/1", { headers: { ...bearer, "x-other": "1" } }),
  });
})();`;

type Found = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

describe.skipIf(reason !== undefined)(`in Chromium ${reason ?? ""}`, () => {
  const stack = new AsyncDisposableStack();
  let backend: string;
  beforeAll(async () => {
    backend = stack.use(await startEchoBackend()).url;
  });
  afterAll(() => stack.disposeAsync());

  /** Returns what the script could read with this `cors` section. @param cors gets the origin of the page. */
  async function readWith(cors: (origin: string) => object): Promise<Found> {
    let found: Found | undefined;
    let page = "";
    await using app = await listening(
      createServer((request, response) => {
        if (request.url === "/result") {
          void text(request).then((body) => {
            found = JSON.parse(body);
            response.end();
          });
        } else {
          response.setHeader("content-type", "text/html");
          response.end(page);
        }
      }),
    );
    await using gate = await startSallyport({
      target: backend,
      config: { cors: cors(app.url), version: { text: "1.2.3" } },
    });
    const address = JSON.stringify(`https://localhost:${gate.port}`);
    const password = JSON.stringify(ALICE.password);
    page = `<!doctype html><script>const GATE = ${address}, PASSWORD = ${password};${SCRIPT}</script>`;
    await using profile = await temporaryDirectory();
    await using browser = startProgram("chromium", [
      ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
      ...["--ignore-certificate-errors", "--no-proxy-server", "--remote-debugging-port=0"],
      ...[`--user-data-dir=${profile.path}`, app.url],
    ]);
    await until(() => found !== undefined || browser.exited(), 60_000);
    if (found === undefined) throw new Error(browser.output());
    return found;
  }

  it("an application from an allowed origin reads logins, refusals and responses of routes", async () => {
    const found = await readWith((origin) => ({ origins: [origin] }));
    expect(found["wrong"]).toMatchObject({ status: 401, success: false });
    expect(found["right"]).toMatchObject({ status: 200, success: true });
    expect(found["put"]).toMatchObject({ status: 200, method: "PUT", url: "/orders/1" });
    expect(found["put"]?.["id"]).toMatch(/^[\w.-]+$/);
    expect(found["version"]).toMatchObject({ status: 200, version: "1.2.3" });
    expect(found["anonymous"]).toMatchObject({ status: 401, success: false });
    expect(found["withCookies"]).toEqual({ error: "TypeError" });
    expect(found["otherHeader"]).toEqual({ error: "TypeError" });
  });

  it("credentials pass when they are allowed", async () => {
    const found = await readWith((origin) => ({
      origins: [origin],
      credentials: true,
      headers: ["Authorization", "Content-Type", "X-Other"],
    }));
    expect(found["withCookies"]).toMatchObject({ status: 200 });
    expect(found["otherHeader"]).toMatchObject({ status: 200 });
  });

  it("every origin is allowed with *, but without credentials", async () => {
    const found = await readWith(() => ({ origins: ["*"] }));
    expect(found["put"]).toMatchObject({ status: 200, method: "PUT" });
    expect(found["withCookies"]).toEqual({ error: "TypeError" });
  });

  it("another origin can read nothing, not even a login", async () => {
    const found = await readWith(() => ({ origins: ["https://app.example.com"] }));
    for (const result of Object.values(found)) expect(result).toEqual({ error: "TypeError" });
  });
});
