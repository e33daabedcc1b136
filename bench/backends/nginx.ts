import { mkdir, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Child, startChild } from "../machine/children.ts";
import { accepting, freePort } from "../machine/ports.ts";
import { needProgram } from "../machine/programs.ts";
import type { Running } from "../peers/peer.ts";
import { running } from "../peers/running.ts";
import type { Setting } from "../setting/setting.ts";

/** The backend's answer to all requests except the large download: 130 bytes of JSON. */
export const SMALL_BODY = JSON.stringify({
  orders: [{ number: 4711, customer: "Example Limited", total: "129.90" }],
  message: "one order is open and waits for its payment",
}).padEnd(130);

export const LARGE = { path: "/large.bin", bytes: 256 * 1024 ** 2 } as const;

/** Starts the backend of most measurements: one worker that answers from its configuration, and one large file. */
export async function startBackend(setting: Setting): Promise<Running> {
  const port = await freePort();
  const files = join(setting.directory, "files");
  await mkdir(files, { recursive: true });
  const large = join(files, LARGE.path);
  await writeFile(large, "");
  await truncate(large, LARGE.bytes);
  return startNginx(
    setting,
    port,
    `server {
    listen 127.0.0.1:${port} backlog=4096;
    default_type application/json;
    location / { return 200 '${SMALL_BODY}'; }
    location = ${LARGE.path} { root ${files}; sendfile on; }
  }`,
  );
}

/** Runs nginx with one worker and the `http` section, and waits until it accepts connections on the port. */
export async function startNginx(
  setting: Setting,
  port: number,
  http: string,
  start: (command: string, args: readonly string[]) => Child = startChild,
): Promise<Running> {
  const directory = join(setting.directory, `nginx-${port}`);
  await mkdir(directory);
  const scratch = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${join(directory, name)};`)
    .join("\n  ");
  const file = await setting.write(
    `nginx-${port}.conf`,
    `daemon off;
${process.getuid?.() === 0 ? "user root;" : ""}
worker_processes 1;
worker_rlimit_nofile 20000;
pid ${join(directory, "pid")};
error_log stderr error;
events { worker_connections 16000; }
http {
  ${scratch}
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 10m;
  client_max_body_size 0;
  ${http}
}
`,
  );
  const child = start(needProgram("nginx"), ["-q", "-p", directory, "-c", file]);
  return running(child, accepting(port, child));
}
