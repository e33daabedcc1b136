/**
 * A rewrite that leads around a protected route. `/static` goes to the application without a token and without its
 * prefix, and `/admin` of the same application is for administrators. The route table uses the path that the client
 * requests, the application the one that it gets: `GET /static/admin/users` matches the public route and arrives as
 * `GET /admin/users`. The path that is checked must be the one that the backend gets, which the configuration must
 * ensure: Sallyport does not start with two ways to one place of which only one has a requirement.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { logLine } from "../support/log-line.ts";
import { startSallyport } from "../support/sallyport.ts";

const admin = {
  name: "admin",
  path: "/admin",
  require: { groups: { any: ["admins"] } },
  upstream: "app",
};
const rest = { name: "rest", path: "/", upstream: "app" };
const assets = {
  name: "assets",
  path: "/static",
  auth: "none",
  upstream: "app",
  rewrite: { stripPrefix: "/static" },
};
/** The intended configuration: the files of the application, which are below /assets. */
const meant = [
  { ...assets, rewrite: { stripPrefix: "/static", addPrefix: "/assets" } },
  { name: "files", path: "/assets", auth: "none", upstream: "app" },
  admin,
  rest,
];

describe("a public route without its prefix next to a protected one", () => {
  it.each([
    ["of the same upstream", [assets, admin, rest]],
    ["with a token that lacks the group", [{ ...assets, auth: "required" }, admin]],
  ])("does not start (%s)", async (_what, routes) => {
    await using backend = await startEchoBackend();
    const started = startSallyport({ target: backend.url, config: { routes } });
    onTestFinished(async () => started.then((gate) => gate.close()).catch(() => undefined));
    await expect(started).rejects.toThrow(/two ways to \/admin of the backend/);
  });

  it("does not take effect with a reload", async () => {
    await using backend = await startEchoBackend();
    await using gate = await startSallyport({
      withoutToken: true,
      target: backend.url,
      config: { routes: meant },
    });
    const file = join(gate.directory, "config.yaml");
    const config = JSON.parse(await readFile(file, "utf8")) as object;
    await writeFile(file, JSON.stringify({ ...config, routes: [assets, admin, rest] }));
    await logLine(gate, { msg: "the configuration was not reloaded" });
    const { status } = await ask(gate, "/static/admin/users");
    expect(status).toBe(200);
    expect(backend.requests.map(({ url }) => url)).toEqual(["/assets/admin/users"]);
  });
});
