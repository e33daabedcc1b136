/** Common servers as backends: each serves a redirect, a cookie, a file and an echo of the request. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { ask } from "../support/ask.ts";
import { freePort } from "../support/dead-ends.ts";
import { startProgram } from "../support/program.ts";
import type { TemporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

interface WebServer {
  /** The program that must be installed. */
  readonly program: string;
  /** Writes its files. @returns its arguments. */
  prepare(directory: TemporaryDirectory, port: number): Promise<readonly string[]>;
}

/**
 * They answer `/whoami` with `METHOD SUBJECT [AUTHORIZATION]`, `/old` with a redirect to `/new`, `/file.txt` with 10
 * KiB.
 */
export const WEB_SERVERS: Readonly<Record<string, WebServer>> = {
  nginx: {
    program: "nginx",
    async prepare(directory, port) {
      const { path } = directory;
      const places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
      const temp = places.map((name) => `${name}_temp_path ${path}/${name};`).join("\n");
      const file = await directory.write(
        "nginx.conf",
        `daemon off; pid ${path}/nginx.pid; error_log stderr warn;
events {}
http { access_log off; ${temp}
  server { listen 127.0.0.1:${port}; root ${path}/www; absolute_redirect on;
    location /whoami { default_type text/plain; return 200 "$request_method $http_x_auth_subject [$http_authorization]"; }
    location /old { add_header Set-Cookie "seen=1; Path=/" always; return 302 http://$http_host/new; }
  } }`,
      );
      return ["-p", path, "-c", file];
    },
  },
  Apache: {
    program: "apache2",
    async prepare(directory, port) {
      const { path } = directory;
      const modules = ["mpm_event", "authz_core", "rewrite", "headers", "dir", "mime"];
      const load = modules.map(
        (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
      );
      const file = await directory.write(
        "apache.conf",
        `ServerRoot ${path}
${load.join("\n")}
Listen 127.0.0.1:${port}
ServerName localhost
PidFile ${path}/apache.pid
ErrorLog ${path}/error.log
DocumentRoot ${path}/www
TypesConfig /dev/null
<Directory ${path}/www>
  Require all granted
</Directory>
<Location /old>
  Header always set Set-Cookie "seen=1; Path=/"
</Location>
RewriteEngine on
RewriteRule ^/old$ http://%{HTTP_HOST}/new [R=302,L]
RewriteRule ^/whoami$ - [R=200,L]
<Location /whoami>
  ErrorDocument 200 "%{REQUEST_METHOD} %{HTTP:X-Auth-Subject} [%{HTTP:Authorization}]"
</Location>
`,
      );
      return ["-f", file, "-D", "FOREGROUND"];
    },
  },
  Caddy: {
    program: "caddy",
    async prepare(directory, port) {
      const file = await directory.write(
        "Caddyfile",
        `{
  admin off
  auto_https off
  storage file_system ${directory.path}/caddy
}
http://:${port} {
  bind 127.0.0.1
  respond /whoami "{method} {header.X-Auth-Subject} [{header.Authorization}]"
  header /old Set-Cookie "seen=1; Path=/"
  redir /old http://{http.request.hostport}/new 302
  root * ${directory.path}/www
  file_server
}
`,
      );
      return ["run", "--config", file, "--adapter", "caddyfile"];
    },
  },
  Flask: {
    // The Python that has Debian's packages; PATH may list another one first.
    program: "/usr/bin/python3",
    async prepare(directory, port) {
      return [
        await directory.write(
          "app.py",
          `from flask import Flask, redirect, request, send_from_directory
app = Flask(__name__)
@app.get("/whoami")
def whoami():
    return f"{request.method} {request.headers.get('X-Auth-Subject', '')} [{request.headers.get('Authorization', '')}]"
@app.get("/old")
def old():
    answer = redirect(request.host_url + "new")
    answer.set_cookie("seen", "1", path="/")
    return answer
@app.get("/file.txt")
def file():
    return send_from_directory("${directory.path}/www", "file.txt")
app.run(host="127.0.0.1", port=${port})
`,
        ),
      ];
    },
  },
};

/** Starts a server on a free port. @returns its URL. */
export async function startWebServer(
  stack: AsyncDisposableStack,
  { program, prepare }: WebServer,
  directory: TemporaryDirectory,
): Promise<string> {
  await mkdir(join(directory.path, "www"));
  await directory.write("www/file.txt", "0123456789".repeat(1024));
  const port = await freePort();
  const server = stack.use(startProgram(program, await prepare(directory, port)));
  await until(() => {
    if (server.exited()) throw new Error(server.output());
    return ask({ port }, "/whoami").then(
      () => true,
      () => false,
    );
  }, 30_000);
  return `http://127.0.0.1:${port}`;
}
