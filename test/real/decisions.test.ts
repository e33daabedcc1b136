/** Real proxies ask whether a request may pass, and forward it themselves: nginx by `auth_request`, Caddy by `forward_auth`. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, ask, type Question } from "../support/ask.ts";
import { freePort } from "../support/dead-ends.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { missing, startProgram } from "../support/program.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

/** What each proxy is told, with the ports of the backend and of Sallyport. */
const ASKERS: Readonly<
  Record<
    string,
    (
      directory: TemporaryDirectory,
      port: number,
      backend: string,
      gate: number,
    ) => Promise<string[]>
  >
> = {
  async nginx({ path, write }, port, backend, gate) {
    const places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    const temp = places.map((name) => `${name}_temp_path ${path}/${name};`).join("\n");
    const file = await write(
      "nginx.conf",
      `daemon off; pid ${path}/nginx.pid; error_log stderr warn;
events {}
http { access_log off; ${temp}
  server { listen 127.0.0.1:${port};
    location / {
      auth_request /_decide;
      auth_request_set $subject $upstream_http_x_auth_subject;
      auth_request_set $groups $upstream_http_x_auth_groups;
      auth_request_set $issuer $upstream_http_x_auth_issuer;
      proxy_set_header X-Auth-Subject $subject;
      proxy_set_header X-Auth-Groups $groups;
      proxy_set_header X-Auth-Issuer $issuer;
      proxy_set_header X-Auth-Client-Subject "";
      proxy_set_header Authorization "";
      proxy_set_header Host $http_host;
      proxy_pass ${backend};
    }
    location = /_decide {
      internal;
      proxy_pass http://127.0.0.1:${gate}/_sallyport/decide;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header Host $host;
      proxy_set_header X-Auth-Subject "";
      proxy_set_header X-Auth-Groups "";
      proxy_set_header X-Auth-Issuer "";
      proxy_set_header X-Auth-Client-Subject "";
      proxy_set_header X-Original-Method $request_method;
      proxy_set_header X-Original-URI $request_uri;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host "";
      proxy_set_header X-Forwarded-Uri "";
      proxy_set_header X-Forwarded-Method "";
      proxy_set_header X-Original-URL "";
    }
  } }`,
    );
    return ["nginx", "-p", path, "-c", file];
  },
  async Caddy({ path, write }, port, backend, gate) {
    const file = await write(
      "Caddyfile",
      `{
  admin off
  auto_https off
  storage file_system ${path}/caddy
}
http://:${port} {
  bind 127.0.0.1
  route {
    request_header -X-Auth-*
    request_header -X_Auth_*
    forward_auth 127.0.0.1:${gate} {
      uri /_sallyport/decide
      header_up -X-Original-URI
      header_up -X-Original-Method
      header_up -X-Original-URL
      copy_headers X-Auth-Subject X-Auth-Groups X-Auth-Issuer
    }
    reverse_proxy ${backend} {
      header_up -Authorization
    }
  }
}
`,
    );
    return ["caddy", "run", "--config", file, "--adapter", "caddyfile"];
  },
};

describe.each(Object.keys(ASKERS))("%s", (name) => {
  const reason = missing(name.toLowerCase());
  const stack = new AsyncDisposableStack();
  let backend: EchoBackend;
  let gate: Sallyport;
  let port: number;
  beforeAll(async () => {
    if (reason !== undefined) return;
    const directory = stack.use(await temporaryDirectory());
    backend = await startEchoBackend();
    stack.defer(() => backend.close());
    const routes = [
      { name: "public", path: "/public/", auth: "none", upstream: "app" },
      { name: "reads", path: "/reads/", methods: ["GET"], auth: "none", upstream: "app" },
      { name: "boss", path: "/boss", require: { groups: { any: ["boss"] } }, upstream: "app" },
      { name: "everything", path: "/", upstream: "app" },
    ];
    gate = await startSallyport({
      target: backend.url,
      config: {
        ...{ server: { tls: "off" }, routes, decisions: { from: ["127.0.0.0/8"] } },
        tokens: { revocation: { logout: true } },
      },
    });
    stack.defer(() => gate.close());
    port = await freePort();
    const [program = "", ...args] =
      (await ASKERS[name]?.(directory, port, backend.url, gate.port)) ?? [];
    const running = stack.use(startProgram(program, args));
    await until(async () => {
      if (running.exited()) throw new Error(running.output());
      return ask({ port }, "/public/x").then(
        ({ status }) => status === 200,
        () => false,
      );
    });
  });
  afterAll(() => stack.disposeAsync());

  const get = (path: string, question: Question = {}): Promise<Answer> =>
    ask({ port }, path, question);

  it.skipIf(reason !== undefined)(
    "lets callers pass, with their identity and no other",
    async () => {
      const forged = {
        ...{ "X-Auth-Subject": "root", "X-Auth-Groups": "boss", "X-Auth-Issuer": "root" },
        ...{ "X-Auth-Client-Subject": "CN=root", X_Auth_Subject: "root" },
      };
      const echoed = echoedBy(await get("/orders?x=1", { token: gate.token, headers: forged }));
      expect(echoed.url).toBe("/orders?x=1");
      expect(echoed.header("x-auth-subject")).toBe("alice");
      expect(echoed.header("x-auth-groups")).toBe("sales");
      expect(echoed.header("authorization")).toBeUndefined();
      const anonymous = echoedBy(await get("/public/x", { headers: forged }));
      expect(anonymous.header("x-auth-subject") ?? "").toBe("");
      expect(anonymous.header("x-auth-groups") ?? "").toBe("");
      for (const name of ["x-auth-issuer", "x-auth-client-subject", "x_auth_subject"]) {
        expect(echoed.header(name) ?? "").not.toMatch(/root/);
        expect(anonymous.header(name) ?? "").toBe("");
      }
    },
  );

  it.skipIf(reason !== undefined)("lets nobody else pass", async () => {
    const before = backend.requests.length;
    expect((await get("/orders")).status).toBe(401);
    expect((await get("/orders", { token: "x.y.z" })).status).toBe(401);
    expect((await get("/boss", { token: gate.token })).status).toBe(403);
    expect((await get("/reads/x", { method: "DELETE" })).status).toBe(401);
    expect((await get("/reads/x", { method: "POST", body: "a body" })).status).toBe(401);
    for (const headers of [
      { "X-Original-URI": "/public/x" },
      { "X-Original-Method": "GET", "X-Forwarded-Method": "GET" },
      { "X-Forwarded-Uri": "/public/x", "X-Forwarded-Host": "public.example.com" },
      { "X-Original-URL": "http://localhost/public/x" },
      { x_original_uri: "/public/x" },
    ]) {
      expect((await get("/orders", { headers })).status, JSON.stringify(headers)).not.toBe(200);
    }
    expect(backend.requests.length).toBe(before);
  });

  it.skipIf(reason !== undefined)("lets no trick with paths pass", async () => {
    const before = backend.requests.length;
    for (const path of [
      ...[
        "/public/../orders",
        "/public/%2e%2e/orders",
        "/public/..%2forders",
        "/public/.%2e/orders",
      ],
      ...[
        "/public//../orders",
        "/public/%252e%252e/orders/",
        "/public/x/../../orders",
        "/%70ublic/x",
      ],
      ...["/public/..;/orders", "/public/%5c..%5corders", "/./orders", "//orders"],
    ]) {
      const { status } = await get(path);
      // What passes is one path in every reading.
      if (status === 200) expect(path).toMatch(/^\/public\/(?:%252e|\.\.;)/);
    }
    const passed = backend.requests.slice(before).map(({ url }) => url);
    expect(passed.filter((url) => !url.startsWith("/public/"))).toEqual([]);
  });

  it.skipIf(reason !== undefined)(
    "lets nobody pass whose token has ended, or when nobody answers",
    async () => {
      const token = await gate.login("alice", "correct horse battery staple");
      expect((await get("/orders", { token })).status).toBe(200);
      expect((await ask(gate, "/api/logout", { method: "POST", token })).status).toBe(200);
      expect((await get("/orders", { token })).status).toBe(401);
      expect(await gate.stop()).toBe(0);
      const before = backend.requests.length;
      expect((await get("/orders", { token: gate.token })).status).toBeGreaterThanOrEqual(500);
      expect((await get("/public/x")).status).toBeGreaterThanOrEqual(500);
      expect(backend.requests.length).toBe(before);
    },
  );
});
