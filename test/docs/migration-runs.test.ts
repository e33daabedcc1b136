/**
 * The promises of the guides about their `after/config.yaml` hold for a running Sallyport: tokens and passwords that
 * were valid before the migration are still valid, and the backend receives the identity in the headers it knows.
 */
import { generateKeyPairSync } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SignJWT } from "jose";
import { expect, onTestFinished, test } from "vitest";
import { type Answer, ask, fieldsOf, type Question } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { startChild } from "../support/child.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { entry } from "../support/entry.ts";
import { cheapHash } from "../support/sallyport.ts";
import { directoryWith, type Files, namedFiles } from "./checked-configuration.ts";
import { ROOT } from "./markdown.ts";

test("kube-rbac-proxy: the token of a service account, for its audience", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const keys = [{ ...publicKey.export({ format: "jwk" }), kid: "cluster", alg: "RS256" }];
  const gate = await startMigrated("kube-rbac-proxy", {
    "cluster-keys.json": JSON.stringify({ keys }),
  });
  // The way the API server writes them: without `typ`, and with a list as `aud`.
  const token = (audience: string): Promise<string> =>
    new SignJWT({ aud: [audience], "kubernetes.io": { namespace: "monitoring" } })
      .setIssuer("https://kubernetes.default.svc.cluster.local")
      .setSubject("system:serviceaccount:monitoring:prometheus")
      .setIssuedAt()
      .setExpirationTime("1h")
      .setProtectedHeader({ alg: "RS256", kid: "cluster" })
      .sign(privateKey);

  const ours = await token("exporter.shop");
  const scraped = echoedBy(await gate.ask("/metrics", { token: ours }));
  expect(scraped.header("x-remote-user")).toBe("system:serviceaccount:monitoring:prometheus");
  expect(scraped.header("authorization")).toBeUndefined();
  const foreign = await token("https://kubernetes.default.svc");
  expect((await gate.ask("/metrics", { token: foreign })).status).toBe(401);
  expect((await gate.ask("/healthz")).status).toBe(200);
  expect((await gate.ask("/debug/pprof", { token: ours })).status).toBe(404);
  expect((await gate.ask("/debug/pprof")).status).toBe(401);
});

test("oauth2-proxy: a password of htpasswd, the old names of headers, and public paths", async () => {
  const gate = await startMigrated("oauth2-proxy");
  const token = await gate.login("alice", "alice example");
  const forged = { "X-Forwarded-Email": "root@example.com", "X-Forwarded-User": "root" };
  const orders = echoedBy(await gate.ask("/orders", { token, headers: forged }));
  expect(orders.header("x-forwarded-user")).toBe("alice");
  expect(orders.header("x-forwarded-groups")).toBe("sales");
  expect(orders.header("x-forwarded-email")).toBeUndefined();
  for (const path of ["/docs/intro", "/healthz"]) expect((await gate.ask(path)).status).toBe(200);
  expect((await gate.ask("/orders")).status).toBe(401);
});

test("nginx: custom headers, the stripped path, and groups instead of an authentication request", async () => {
  const users = {
    alice: { password: cheapHash("a"), groups: ["sales", "reports"] },
    bob: { password: cheapHash("b"), groups: ["sales"] },
  };
  const files = { "users.yaml": JSON.stringify({ users }) };
  const gate = await startMigrated("nginx-auth-request", files);
  const alice = await gate.login("alice", "a");
  const report = echoedBy(await gate.ask("/api/reports/2026", { token: alice }));
  expect([report.url, report.header("x-user")]).toEqual(["/2026", "alice"]);
  expect(report.header("x-groups")).toBe("sales,reports");
  const bob = await gate.login("bob", "b");
  expect((await gate.ask("/api/reports/2026", { token: bob })).status).toBe(403);
  const forged = { "X-User": "root", "X-Groups": "reports" };
  const documents = echoedBy(await gate.ask("/docs/", { headers: forged }));
  expect([documents.header("x-user"), documents.header("x-groups")]).toEqual([
    undefined,
    undefined,
  ]);
});

test("ingress-nginx: its question, with the names of headers and the groups of before", async () => {
  const users = {
    alice: { password: cheapHash("a"), groups: ["sales", "reports"] },
    bob: { password: cheapHash("b"), groups: ["sales"] },
  };
  const gate = await startMigrated("ingress-nginx", { "users.yaml": JSON.stringify({ users }) });
  const decide = (path: string, token?: string): Promise<Answer> =>
    gate.decide({ "X-Original-URL": `https://orders.example.com${path}` }, token);
  const [alice, bob] = [await gate.login("alice", "a"), await gate.login("bob", "b")];
  const report = await decide("/reports/2026", alice);
  expect(report).toMatchObject({
    status: 200,
    headers: { "x-user": "alice", "x-groups": "sales,reports" },
  });
  expect((await decide("/reports/2026", bob)).status).toBe(403);
  expect((await decide("/orders", bob)).status).toBe(200);
  expect((await decide("/orders")).status).toBe(401);
  const documents = await decide("/docs/");
  expect(documents).toMatchObject({ status: 200, headers: { "x-user": "", "x-groups": "" } });
});

test("Authelia: a password of its users file, and its rules", async () => {
  const gate = await startMigrated("authelia");
  const decide = (path: string, token?: string, client = "10.1.2.3"): Promise<Answer> => {
    const headers = { "X-Original-URL": `https://orders.example.com${path}` };
    return gate.decide({ ...headers, "X-Forwarded-For": client }, token);
  };
  const alice = await gate.login("alice", "alice example");
  const bob = await gate.login("bob", "bob example");
  const administrator = await decide("/admin/", alice);
  expect(administrator).toMatchObject({
    status: 200,
    headers: { "remote-user": "alice", "remote-groups": "sales,admins" },
  });
  expect((await decide("/admin/", bob)).status).toBe(403);
  expect((await decide("/admin/", alice, "192.0.2.50")).status).toBe(403);
  expect((await decide("/books/1", alice)).status).toBe(200);
  expect((await decide("/books/1", bob)).status).toBe(403);
  expect((await decide("/orders", bob)).status).toBe(200);
  expect((await decide("/docs/x")).status).toBe(200);
  const elsewhere = { "X-Original-URL": "https://other.example.com/" };
  expect((await gate.decide(elsewhere, alice)).status).toBe(404);
  expect((await gate.decide(elsewhere)).status).toBe(401);
});

test("traefik-forward-auth: navigations go to the sign-in, everything else gets 401", async () => {
  const gate = await startMigrated("traefik-forward-auth");
  const decide = (path: string, more: Readonly<Record<string, string>> = {}): Promise<Answer> => {
    const host = { "X-Forwarded-Host": "orders.example.com", "X-Forwarded-Uri": path };
    return gate.decide({ ...host, "X-Forwarded-Method": "GET", ...more });
  };
  expect(await decide("/docs/x")).toMatchObject({
    status: 200,
    headers: { "x-forwarded-user": "" },
  });
  expect((await decide("/admin/")).status).toBe(401);
  const navigation = { "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document" };
  const { status, headers } = await decide("/admin/", navigation);
  expect(status).toBe(303);
  // Relative, so that it stays on the host that was asked for.
  expect(headers["location"]).toMatch(/^\/_sallyport\/login\/oidc\?to=/);
});

interface Migrated {
  ask(path: string, question?: Question): Promise<Answer>;
  /** Asks whether a GET may pass, as a proxy does. */
  decide(headers: Readonly<Record<string, string>>, token?: string): Promise<Answer>;
  login(username: string, password: string): Promise<string>;
}

/** Runs Sallyport with the files of a guide, and an echo backend for each upstream. */
async function startMigrated(name: string, files: Files = {}): Promise<Migrated> {
  const { ca } = await testCertificates();
  const guide = join(ROOT, "docs/migration", name, "after");
  const shipped: Record<string, string> = {};
  for (const file of await readdir(guide)) {
    shipped[file] = await readFile(join(guide, file), "utf8");
  }
  const all = { ...(await namedFiles()), ...shipped, ...files };
  const directory = await directoryWith(all);
  const upstreams = [
    ...String(all["config.yaml"] ?? "").matchAll(/^ {2}(\w+):(?= \{ targets|\n {4}targets)/gm),
  ];
  const targets = await Promise.all(
    upstreams.map(async ([, upstream = ""]) => {
      const backend = await startEchoBackend();
      onTestFinished(() => backend.close());
      const name = `SALLYPORT_UPSTREAMS__${upstream.toUpperCase()}__TARGETS`;
      return [name, JSON.stringify([backend.url])] as const;
    }),
  );
  const child = startChild(entry(), ["serve", "--config", join(directory, "config.yaml")], {
    SALLYPORT_ENTRY: undefined,
    SALLYPORT_SERVER__LISTEN: "127.0.0.1:0",
    SALLYPORT_ADMIN__LISTEN: "127.0.0.1:0",
    ...(String(all["config.yaml"]).includes("\ndecisions:") && {
      SALLYPORT_DECISIONS__FROM: JSON.stringify(["127.0.0.0/8"]),
    }),
    ...Object.fromEntries(targets),
  });
  onTestFinished(() => child.kill());
  const port = await child.line((line) => {
    const { msg, port: listening } = JSON.parse(line) as { msg?: string; port?: number };
    return msg === "listening" ? listening : undefined;
  });
  const peer = { port, ca };
  return {
    ask: (path, question) => ask(peer, path, question),
    decide(headers, token) {
      const said = { "X-Forwarded-For": "192.0.2.50", ...headers };
      const method = "X-Forwarded-Method" in headers ? {} : { "X-Original-Method": "GET" };
      const bearer = token === undefined ? {} : { authorization: `Bearer ${token}` };
      return ask(peer, "/_sallyport/decide", { headers: { ...said, ...method, ...bearer } });
    },
    async login(username, password) {
      const body = JSON.stringify({ username, password });
      const headers = { "content-type": "application/json" };
      const answer = await ask(peer, "/api/authenticate", { method: "POST", headers, body });
      expect(answer.status).toBe(200);
      return String(fieldsOf(answer)["token"]);
    },
  };
}
