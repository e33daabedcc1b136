import { Agent } from "node:http";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { keysCommand } from "../cli/command.ts";
import { ask, askLogin, fieldsOf } from "../support/ask.ts";
import { freePort } from "../support/dead-ends.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { startProgram } from "../support/program.ts";
import {
  ALICE,
  cheapHash,
  type ConfigParts,
  type Sallyport,
  startSallyport,
} from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

export interface Replicas extends AsyncDisposable {
  readonly gates: Sallyport[];
  /** nginx in front of all of them. */
  readonly front: { readonly port: number };
  /** The directory of the signing keys. */
  readonly keys: string;
  /** Stops a replica the way Kubernetes does, and starts it again. */
  restart(place: number): Promise<void>;
}

/**
 * Starts three replicas without TLS and with the same keys and users behind nginx. X-Client sets a client's address.
 */
export async function startReplicas(config: ConfigParts, workers = 1): Promise<Replicas> {
  await using stack = new AsyncDisposableStack();
  const backend = stack.use(await startEchoBackend());
  const directory = stack.use(await temporaryDirectory());
  // When started by root, nginx runs as another user.
  await chmod(directory.path, 0o755);
  const keys = join(directory.path, "keys");
  await keysCommand("generate", "-d", keys);
  const ports = [await freePort(), await freePort(), await freePort()];
  const names = Array.from({ length: 20 }, (_, user) => `user${user}`);
  const users = Object.fromEntries(
    [ALICE.username, ...names].map((name) => [name, { password: cheapHash(ALICE.password) }]),
  );
  const start = (place: number): Promise<Sallyport> =>
    startSallyport({
      target: backend.url,
      files: { "users.yaml": JSON.stringify({ users }) },
      config: {
        server: {
          listen: `127.0.0.1:${ports[place]}`,
          tls: "off",
          trustedProxies: ["127.0.0.1/32"],
          drain: { delay: "300ms", timeout: "5s" },
          workers,
        },
        ...config,
        tokens: { keys, revocation: { logout: true }, ...Object(config["tokens"]) },
      },
    });
  const gates = await Promise.all(ports.map((_, place) => start(place)));
  const port = await freePort();
  const file = await directory.write("nginx.conf", nginxConfiguration(directory.path, port, ports));
  const nginx = stack.use(startProgram("nginx", ["-p", directory.path, "-c", file]));
  await until(async () => {
    if (nginx.exited()) throw new Error(nginx.output());
    return ask({ port }, "/public/").then(
      () => true,
      () => false,
    );
  });
  const rest = stack.move();
  return {
    gates,
    front: { port },
    keys,
    async restart(place) {
      await gates[place]?.stop();
      await gates[place]?.close();
      gates[place] = await start(place);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(gates.map((gate) => gate.close()));
      await rest.disposeAsync();
    },
  };
}

function nginxConfiguration(directory: string, port: number, ports: readonly number[]): string {
  return `
daemon off;
worker_processes 1;
pid ${directory}/nginx.pid;
error_log stderr crit;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  upstream sallyport {
    ${ports.map((each) => `server 127.0.0.1:${each} max_fails=0;`).join("\n    ")}
    keepalive 16;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://sallyport;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $http_x_client;
      proxy_next_upstream error timeout;
    }
  }
}
`;
}

/** Logs in from a client address. */
export async function logInAt(
  { port }: { readonly port: number },
  username: string,
  password = ALICE.password,
  address = "192.0.2.1",
): Promise<{ readonly status: number; readonly token: string; readonly retryAfter?: string }> {
  const from = { "x-forwarded-for": address, "x-client": address };
  const answer = await askLogin({ port }, { username, password }, from);
  const { "retry-after": retryAfter } = answer.headers;
  return {
    status: answer.status,
    token: String(fieldsOf(answer)["token"]),
    ...(retryAfter !== undefined && { retryAfter }),
  };
}

/**
 * Sends requests with a valid token through nginx as long as `work` takes. @returns the statuses and the slowest time.
 */
export async function underLoad(
  { port }: { readonly port: number },
  token: string,
  work: () => Promise<void>,
) {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const statuses = new Map<number | string, number>();
  let slowestMs = 0;
  const load = { ended: false };
  const asking = Array.from({ length: 4 }, async () => {
    while (!load.ended) {
      const began = performance.now();
      const status = await ask({ port }, "/orders", { token, agent }).then(
        (answer) => answer.status,
        (error: unknown) => String(error),
      );
      slowestMs = Math.max(slowestMs, performance.now() - began);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  });
  try {
    await work();
  } finally {
    load.ended = true;
    await Promise.all(asking);
    agent.destroy();
  }
  return { statuses: Object.fromEntries(statuses), slowestMs };
}
