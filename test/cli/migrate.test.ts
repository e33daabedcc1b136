/** The examples of the guides in docs/migration, and other settings found in real deployments. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { checked, namedFiles } from "../docs/checked-configuration.ts";
import { ROOT } from "../docs/markdown.ts";
import { command } from "./command.ts";

const MIGRATION = join(ROOT, "docs/migration");

interface Result {
  readonly configuration: Record<string, unknown>;
  readonly report: readonly { setting: string; result: string; words: string }[];
}

async function migrated(
  args: readonly string[],
  env: Record<string, string> = {},
  input = "",
): Promise<Result> {
  const { code, out, err } = await command(["migrate", "--format", "json", ...args], env, input);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return JSON.parse(out) as Result;
}

const settings = ({ report }: Result, result: string): string[] =>
  report.filter((line) => line.result === result).map(({ setting }) => setting);

/** Returns a guide's file after the migration, as an object. */
function after(proxy: string): Record<string, unknown> {
  return parse(readFileSync(join(MIGRATION, proxy, "after/config.yaml"), "utf8")) as Record<
    string,
    unknown
  >;
}

const EXAMPLES = [
  ["oauth2-proxy", "oauth2-proxy", "oauth2-proxy.cfg"],
  ["kube-rbac-proxy", "kube-rbac-proxy", "deployment.yaml"],
  ["nginx", "nginx-auth-request", "nginx.conf"],
] as const;

describe.each(EXAMPLES)("the example of the guide, %s", (from, guide, name) => {
  const file = join(MIGRATION, guide, "before", name);

  it("is converted to a file that passes the check", async () => {
    const { code, out, err } = await command(["migrate", "--from", from, "--file", file]);
    expect(code).toBe(0);
    expect(err).toMatch(/^Carries over\n/);
    expect(err).toMatch(/Next: sallyport check --config config\.yaml\n$/);
    const here = out
      .replaceAll(/certFile: \S*tls\.crt/g, "certFile: tls.crt")
      .replaceAll(/keyFile: \S*tls\.key/g, "keyFile: tls.key")
      .replace("/etc/oauth2-proxy/htpasswd", "htpasswd");
    const htpasswd = readFileSync(join(MIGRATION, "oauth2-proxy/before/htpasswd"), "utf8");
    const users = readFileSync(join(MIGRATION, "nginx-auth-request/after/users.yaml"), "utf8");
    const files = { ...(await namedFiles()), htpasswd, "users.yaml": users };
    expect(await checked(here, files)).toMatchObject({ code: 0, err: "" });
  });

  it("is converted to the guide's own file, except for manual additions", async () => {
    const { configuration } = await migrated(["--from", from, "--file", file]);
    const {
      server: _server,
      users: _users,
      admin: _admin,
      tokens,
      routes,
      upstreams,
      ...rest
    } = configuration;
    const guided = after(guide);
    for (const [section, value] of Object.entries(rest)) expect(value).toEqual(guided[section]);
    const issuers = (section: unknown): unknown[] =>
      ((section as { trusted?: Record<string, unknown>[] }).trusted ?? []).map((trusted) => [
        trusted["issuer"],
        trusted["audience"],
        trusted["algorithms"],
      ]);
    expect(issuers(tokens)).toEqual(issuers(guided["tokens"]));
    const targets = (section: unknown): unknown[] =>
      Object.values(section as Record<string, unknown>)
        .map((each) => JSON.stringify(each))
        .toSorted();
    expect(targets(upstreams)).toEqual(targets(guided["upstreams"]));
    // kube-rbac-proxy leaves the choice of paths to RBAC; the guide's file names /metrics.
    const rules = (section: unknown): unknown[] =>
      (section as Record<string, unknown>[])
        .map(({ name: _name, upstream: _upstream, ...route }) =>
          JSON.stringify(route, Object.keys(route).toSorted()),
        )
        .filter((route) => !/metrics/.test(route))
        .toSorted();
    const expected = rules(guided["routes"]);
    expect(rules(routes)).toEqual(from === "kube-rbac-proxy" ? [...expected, "{}"] : expected);
  });
});

describe("oauth2-proxy", () => {
  it("prefers flags over the environment, and both over the file, and repeats no secret", async () => {
    const flags = `--http-address=:4180 --upstream 'http://127.0.0.1:3000/' --upstream=http://127.0.0.1:3001/api/ --upstream file:///srv --skip-auth-route '^/a(b|c)' --skip-auth-route=POST=^/hook --cookie-secret "hunter2 hunter2" --pass-host-header=false --upstream-timeout 45s`;
    const env = {
      OAUTH2_PROXY_HTTP_ADDRESS: "0.0.0.0:9999",
      OAUTH2_PROXY_CLIENT_SECRET: "hunter2",
      OAUTH2_PROXY_ALLOWED_GROUPS: "sales,admin",
      OAUTH2_PROXY_OIDC_ISSUER_URL: "https://id.example.com",
      OAUTH2_PROXY_CLIENT_ID: "orders",
      OAUTH2_PROXY_OIDC_GROUPS_CLAIM: "realm_access.roles",
    };
    const result = await migrated(["--from", "oauth2-proxy", "--flags", flags], env);
    expect(JSON.stringify(result)).not.toContain("hunter2");
    expect(result.configuration).toMatchObject({
      server: { listen: "0.0.0.0:4180", tls: "off" },
      tokens: { issuer: "orders", keys: "keys" },
      browser: {
        providers: [
          {
            name: "oidc",
            issuer: "https://id.example.com",
            clientId: "orders",
            claims: { groups: "realm_access.roles" },
          },
        ],
      },
      routes: [
        { path: "/hook", methods: ["POST"], auth: "none" },
        { path: "/api/", hostHeader: "target", require: { groups: { any: ["sales", "admin"] } } },
        { name: "everything", require: { groups: { any: ["sales", "admin"] } } },
      ],
      upstreams: { app: { targets: ["http://127.0.0.1:3000"], timeouts: { response: "45s" } } },
    });
    expect(settings(result, "lost")).toEqual(
      expect.arrayContaining(["skip_auth_routes ^/a(b|c)", "upstreams file://…"]),
    );
    expect(settings(result, "changed")).toContain("skip_auth_routes POST=^/hook");
  });

  it("says that tokens of programs are not kept to the domains of people", async () => {
    const flags =
      "--oidc-issuer-url=https://id.example --client-id=app --email-domain=example.com --upstream=http://127.0.0.1:1";
    const from = ["--from", "oauth2-proxy", "--flags"];
    const words = async (more: string) =>
      (await migrated([...from, flags + more])).report
        .filter(({ setting, result }) => setting === "email_domains" && result === "changed")
        .map((line) => line.words)
        .join();
    expect(await words("")).not.toContain("tokens.trusted");
    expect(await words(" --skip-jwt-bearer-tokens")).toContain("tokens.trusted");
    expect(await words(" --extra-jwt-issuers=https://b.example=app")).toContain("tokens.trusted");
  });

  it("names an unknown setting", async () => {
    const result = await migrated([
      "--from",
      "oauth2-proxy",
      "--flags",
      "--brand-new=1 --upstream=http://h/",
    ]);
    expect(result.report).toContainEqual({
      setting: "brand_new",
      result: "lost",
      words: "unknown to this command: see the guide",
    });
  });
});

describe("kube-rbac-proxy", () => {
  it("carries over paths and certificates, but not wildcards", async () => {
    const flags =
      "--secure-listen-address=:8443 --upstream=https://127.0.0.1:9090/ --upstream-ca-file=/ca.crt --allow-paths=/metrics,/federate --ignore-paths=/healthz,/static/* --client-ca-file=/clients.crt --tls-min-version=VersionTLS13 --v=10";
    const result = await migrated(["--from", "kube-rbac-proxy", "--flags", flags]);
    expect(result.configuration).toMatchObject({
      server: {
        listen: "0.0.0.0:8443",
        tls: { selfSigned: true, minVersion: "TLSv1.3", clientCertificates: { mode: "optional" } },
      },
      routes: [{ exact: "/healthz", auth: "none" }, { exact: "/metrics" }, { exact: "/federate" }],
      upstreams: { app: { targets: ["https://127.0.0.1:9090"], tls: { caFile: "/ca.crt" } } },
    });
    expect(settings(result, "lost")).toEqual(
      expect.arrayContaining(["ignore-paths /static/*", "SubjectAccessReview", "v"]),
    );
  });
});

describe("nginx", () => {
  const conf = `
    upstream pool { server 10.0.0.1:80; server 10.0.0.2:80; }
    server { listen 80; return 301 https://$host$request_uri; }
    server {
      listen 443 ssl; server_name "a.example.com" b.example.com; # two names; and a brace }
      ssl_certificate tls.crt; ssl_certificate_key tls.key; ssl_protocols TLSv1.3;
      auth_request /auth; add_header X-A "b; c";
      location = /auth { internal; proxy_pass http://127.0.0.1:9000; }
      location /v1/ { proxy_pass http://pool/v2/; }
      location = /free { auth_request off; proxy_pass http://pool; }
      location ~ "^/x/(\\d{1,3})$" { proxy_pass http://pool; }
      location /files/ { root /srv; }
    }`;

  it("uses the server with auth_request, and reports locations that are not plain paths", async () => {
    const result = await migrated(["--from", "nginx", "--file", "-"], {}, conf);
    expect(result.configuration).toMatchObject({
      server: { listen: "0.0.0.0:443", tls: { minVersion: "TLSv1.3" } },
      routes: [
        { path: "/v1/", rewrite: { stripPrefix: "/v1", addPrefix: "/v2" }, upstream: "pool" },
        { exact: "/free", auth: "none", upstream: "pool" },
      ],
      upstreams: { pool: { targets: ["http://10.0.0.1:80", "http://10.0.0.2:80"] } },
    });
    expect(settings(result, "lost")).toEqual(
      expect.arrayContaining([
        String.raw`location ~ ^/x/(\d{1,3})$`,
        "location /files/",
        "add_header",
        "root",
      ]),
    );
  });

  describe("what nginx does not let everybody do", () => {
    const migratedServer = (text: string, around = "") =>
      migrated(
        ["--from", "nginx", "--file", "-"],
        {},
        `http { ${around}
          server {
            listen 80;
            location = /auth { internal; proxy_pass http://127.0.0.1:9000; }
            location /x/ { auth_request /auth; proxy_pass http://127.0.0.1:8080; }
            ${text}
          }
        }`,
      );

    it.each<[string, string, string?]>([
      ["auth_basic", "location /a/ { auth_basic x; proxy_pass http://127.0.0.1:8080; }"],
      ["deny", "location /a/ { deny all; proxy_pass http://127.0.0.1:8080; }"],
      [
        "auth_basic of the server",
        "auth_basic x; location /a/ { proxy_pass http://127.0.0.1:8080; }",
      ],
      [
        "the question of all servers",
        "location /a/ { proxy_pass http://127.0.0.1:8080; }",
        "auth_request /auth;",
      ],
      [
        "a location in a public one",
        `location / {
          proxy_pass http://127.0.0.1:8080;
          location /a/ { auth_request /auth; proxy_pass http://127.0.0.1:8080; }
        }`,
      ],
      [
        "the location around it",
        `location /b/ {
          auth_request /auth;
          location /a/ { proxy_pass http://127.0.0.1:8080; }
        }`,
      ],
    ])("needs a token: %s", async (_what, text, around) => {
      const { configuration, report } = await migratedServer(text, around);
      const routes = configuration["routes"] as { path?: string; auth?: string }[];
      expect(routes.filter(({ path }) => path === "/a/")).toEqual([
        expect.not.objectContaining({ auth: "none" }),
      ]);
      const lines = report.filter(({ setting }) => setting === "location /a/");
      expect(lines.map(({ words }) => words).join()).not.toContain("public");
    });

    it("gets no route if it is internal", async () => {
      const text = "location /a/ { internal; proxy_pass http://127.0.0.1:8080; }";
      const result = await migratedServer(text);
      expect(JSON.stringify(result.configuration)).not.toContain("/a/");
      expect(settings(result, "lost")).toContain("location /a/");
    });

    it.each([
      ["by a pattern", "location ~ /a/ { proxy_pass http://127.0.0.1:8080; }"],
      ["that nginx answers", "location /a/ { return 403; }"],
      ["that is internal", "location /a/ { internal; proxy_pass http://127.0.0.1:8080; }"],
      ["to a variable address", "location /a/ { proxy_pass http://$backend; }"],
    ])("without a route is said to take the one around it: %s", async (_what, text) => {
      const { report } = await migratedServer(text);
      const lost = report.filter(({ setting }) => setting.startsWith("location"));
      expect(lost.map(({ words }) => words).join()).toContain(
        "take the route around it, public or not",
      );
    });

    it("is to be reviewed if a path of nginx covers more", async () => {
      const text = "location /a { auth_request /auth; proxy_pass http://127.0.0.1:8080; }";
      const { report } = await migratedServer(text);
      expect(report).toContainEqual({
        setting: "location /a",
        result: "changed",
        words: "routes: a: /a and all paths below it, but not /ax",
      });
    });

    it("is open if nginx says so", async () => {
      const text = `auth_basic x;
        location /a/ { auth_basic off; proxy_pass http://127.0.0.1:8080; }`;
      const { configuration } = await migratedServer(text);
      expect(configuration["routes"]).toContainEqual(
        expect.objectContaining({ path: "/a/", auth: "none" }),
      );
    });
  });

  it("says what check refuses: a public location that reaches the whole backend", async () => {
    const open = `server {
      listen 80; auth_request /auth;
      location = /auth { internal; proxy_pass http://127.0.0.1:9000; }
      location /public/ { auth_request off; proxy_pass http://127.0.0.1:8080/; }
      location / { proxy_pass http://127.0.0.1:8080; }
    }`;
    const args = ["migrate", "--from", "nginx", "--file", "-"];
    const result = await migrated(args.slice(1), {}, open);
    expect(result.report).toContainEqual({
      setting: "routes[0].rewrite",
      result: "changed",
      words: expect.stringMatching(
        /^sallyport check refuses this: creates two ways to \/ of the backend: GET \/public\/ is public .*\(rewrite to/,
      ) as unknown,
    });
    const { out, err } = await command(args, {}, open);
    expect(err).toMatch(
      /Changed: review these[^]*routes\[0\]\.rewrite +sallyport check refuses this/,
    );
    const refused = await checked(out, await namedFiles());
    expect(refused.code).toBe(78);
    expect(refused.err).toContain("creates two ways to /");
  });

  it("says nothing of that kind about what check accepts", async () => {
    const { report } = await migrated(["--from", "nginx", "--file", "-"], {}, conf);
    expect(report.filter(({ words }) => words.includes("check refuses"))).toEqual([]);
  });

  it.each(["server {", "}", "server { listen 80; }", "listen 80", "a {".repeat(30)])(
    "reports the problem with %j",
    async (text) => {
      const { code, out, err } = await command(
        ["migrate", "--from", "nginx", "--file", "-"],
        {},
        text,
      );
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).toMatch(/^sallyport migrate: the file has |^sallyport migrate: .* of the file /);
    },
  );
});

it.each([
  [["--from", "envoy"], "--from must be oauth2-proxy or kube-rbac-proxy or nginx, not envoy"],
  [[], "--from is missing"],
  [["--from", "nginx", "--file", "/nowhere"], "/nowhere cannot be read: ENOENT"],
  [
    ["--from", "kube-rbac-proxy", "--file", "-"],
    "the manifest has no container of kube-rbac-proxy",
  ],
  [["--from", "kube-rbac-proxy"], "there is no --upstream with an http URL"],
])("%j is a usage error", async (args, message) => {
  const { code, err } = await command(["migrate", ...args]);
  expect(code).toBe(2);
  expect(err).toContain(message);
});

it("--strict fails if something is lost", async () => {
  const file = join(MIGRATION, "kube-rbac-proxy/before/deployment.yaml");
  const args = ["migrate", "--from", "kube-rbac-proxy", "--file", file, "--strict"];
  expect((await command(args)).code).toBe(1);
});
