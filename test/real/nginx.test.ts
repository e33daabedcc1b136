import { createHash, randomBytes } from "node:crypto";
import { chmod, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, fieldsOf } from "../support/ask.ts";
import { freePort } from "../support/dead-ends.ts";
import { valuesOf } from "../support/http-reader.ts";
import { missing, startProgram } from "../support/program.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

const reason = missing("nginx");
const document = randomBytes(3 * 1024 * 1024);

/** A typical nginx behind the sidecar: static files, an API that echoes the request, and its own errors. */
function configurationOf(directory: string, port: number): string {
  return `
daemon off;
worker_processes 1;
pid ${directory}/nginx.pid;
error_log stderr warn;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  client_max_body_size 64m;
  gzip on;
  gzip_types text/plain;
  gzip_min_length 1;
  server {
    listen 127.0.0.1:${port};
    root ${directory}/www;
    location /public/ { alias ${directory}/www/; }
    location /whoami {
      default_type text/plain;
      return 200 "$request_method $request_uri $http_x_auth_subject $http_x_auth_groups [$http_authorization] $http_x_forwarded_for $http_x_forwarded_proto $http_host";
    }
    location /admin { return 401 "nginx wants something else"; }
    location /moved { return 301 https://shop.example.com/there; }
    location /upload { dav_methods PUT; create_full_put_path on; alias ${directory}/uploads; }
  }
}
`;
}

describe.skipIf(reason !== undefined)(`in front of nginx ${reason ?? ""}`, () => {
  const stack = new AsyncDisposableStack();
  let directory: TemporaryDirectory;
  let gate: Sallyport;

  beforeAll(async () => {
    directory = stack.use(await temporaryDirectory());
    // When started by root, nginx runs as another user.
    await chmod(directory.path, 0o755);
    await mkdir(join(directory.path, "www"));
    await mkdir(join(directory.path, "uploads"));
    await chmod(join(directory.path, "uploads"), 0o777);
    await directory.write("www/document.bin", document);
    await directory.write("www/hello.txt", "hello\n".repeat(1000));
    const port = await freePort();
    const file = await directory.write("nginx.conf", configurationOf(directory.path, port));
    const nginx = stack.use(startProgram("nginx", ["-p", directory.path, "-c", file]));
    await until(async () => {
      if (nginx.exited()) throw new Error(nginx.output());
      return ask({ port }, "/public/hello.txt").then(
        () => true,
        () => false,
      );
    });
    gate = stack.use(await startSallyport({ target: `http://127.0.0.1:${port}` }));
  });
  afterAll(() => stack.disposeAsync());

  it("requires a token, and passes the identity to nginx", async () => {
    const refused = await ask(gate, "/whoami");
    expect(refused.status).toBe(401);
    expect(fieldsOf(refused)["success"]).toBe(false);
    const answer = await ask(gate, "/whoami/a%20b?x=%2F", {
      token: gate.token,
      headers: { host: "api.example.com", "x-auth-subject": "root" },
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toBe(
      "GET /whoami/a%20b?x=%2F alice sales [] 127.0.0.1 https api.example.com",
    );
    expect(answer.headers.server).toMatch(/^nginx/);
  });

  it("serves complete files, ranges, conditional requests, compression and HEAD", async () => {
    const whole = await ask(gate, "/public/document.bin");
    expect(whole.status).toBe(200);
    expect(whole.headers["content-length"]).toBe(String(document.length));
    const { etag = "" } = whole.headers;

    const range = await ask(gate, "/public/hello.txt", { headers: { range: "bytes=6-10" } });
    expect([range.status, range.body]).toEqual([206, "hello"]);
    expect(range.headers["content-range"]).toBe("bytes 6-10/6000");

    const known = await ask(gate, "/public/document.bin", { headers: { "if-none-match": etag } });
    expect([known.status, known.body]).toEqual([304, ""]);

    const gzip = { "accept-encoding": "gzip" };
    const compressed = await ask(gate, "/public/hello.txt", { headers: gzip });
    expect(compressed.headers["content-encoding"]).toBe("gzip");

    const head = await ask(gate, "/public/document.bin", { method: "HEAD" });
    expect([head.status, head.body]).toEqual([200, ""]);
    expect(head.headers["content-length"]).toBe(String(document.length));
  });

  it("accepts uploads, with a length and in chunks", async () => {
    const token = gate.token;
    const put = await ask(gate, "/upload/sized.bin", { method: "PUT", token, body: document });
    expect(put.status).toBe(201);
    const chunked = { "transfer-encoding": "chunked" };
    const empty = await ask(gate, "/upload/empty.bin", { method: "PUT", token, headers: chunked });
    expect(empty.status).toBe(201);
    const back = await ask(gate, "/upload/sized.bin", { token });
    expect(back.headers["content-length"]).toBe(String(document.length));
    const stored = await readFile(join(directory.path, "uploads/sized.bin"));
    const hash = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
    expect(hash(stored)).toBe(hash(document));
  });

  it("passes nginx's own responses unchanged", async () => {
    const { token } = gate;
    const refused = await ask(gate, "/admin", { token });
    expect([refused.status, refused.body]).toEqual([401, "nginx wants something else"]);
    expect(refused.headers["proxy-status"]).toBeUndefined();
    expect(refused.headers["www-authenticate"]).toBeUndefined();
    const moved = await ask(gate, "/moved", { token });
    expect([moved.status, moved.headers.location]).toEqual([301, "https://shop.example.com/there"]);
    expect((await ask(gate, "/nothing-here", { token })).status).toBe(404);
    const method = await ask(gate, "/public/hello.txt", { method: "POST", token, body: "x" });
    expect(method.status).toBe(405);
  });

  it("reuses connections, and survives when nginx closes them", async () => {
    const statuses: number[] = [];
    // nginx closes a connection after keepalive_requests, 1000 by default.
    for (let i = 0; i < 1100; i += 1) {
      statuses.push((await ask(gate, "/public/hello.txt", { method: "HEAD" })).status);
    }
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
  });
});

describe.skipIf(reason !== undefined)(`behind nginx ${reason ?? ""}`, () => {
  const fields = { "x-original-url": "/admin", "x-rewrite-url": "/admin" };
  const more = {
    "x-forwarded-prefix": "/admin",
    "x-original-uri": "/admin",
    "script-name": "/admin",
  };

  it("passes on no header that nginx took from its client, but for one that nginx sets", async () => {
    await using directory = await temporaryDirectory();
    await chmod(directory.path, 0o755);
    await using backend = await startRawBackend();
    const server = {
      tls: "off",
      trustedProxies: ["127.0.0.1"],
      trustedHeaders: ["X-Original-URI"],
    };
    await using gate = await startSallyport({
      target: backend.url,
      withoutToken: true,
      config: { server },
    });
    const port = await freePort();
    const file = await directory.write("front.conf", frontOf(directory.path, port, gate.port));
    await using nginx = startProgram("nginx", ["-p", directory.path, "-c", file]);
    await until(async () => {
      if (nginx.exited()) throw new Error(nginx.output());
      return ask({ port }, "/public/up").then(
        ({ status }) => status === 200,
        () => false,
      );
    });
    backend.forget();
    const headers = { ...fields, ...more, host: "api.example.com" };
    expect((await ask({ port }, "/public/x?a=1", { headers })).status).toBe(200);
    expect((await ask({ port }, "/admin", { headers })).status).toBe(401);
    const [seen, ...others] = backend.requests();
    expect(others).toEqual([]);
    expect(JSON.stringify(seen)).not.toContain("/admin");
    expect(valuesOf(seen?.headers ?? [], "x-original-uri")).toEqual(["/public/x?a=1"]);
    expect(valuesOf(seen?.headers ?? [], "x-forwarded-for")).toEqual(["127.0.0.1, 127.0.0.1"]);
    expect(valuesOf(seen?.headers ?? [], "host")).toEqual(["api.example.com"]);
  });
});

/** A typical nginx in front: it sets what it knows, and passes on everything else. */
function frontOf(directory: string, port: number, gate: number): string {
  return `
daemon off;
worker_processes 1;
pid ${directory}/front.pid;
error_log stderr warn;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://127.0.0.1:${gate};
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Original-URI $request_uri;
    }
  }
}
`;
}
