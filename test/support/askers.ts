/** Proxies that ask whether a request may pass, as deploy/proxies configures them. */
import { readFileSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { ROOT } from "../docs/markdown.ts";
import { ask } from "./ask.ts";
import { freePort } from "./dead-ends.ts";
import { missing, startProgram } from "./program.ts";
import { temporaryDirectory, type TemporaryDirectory } from "./temporary-directory.ts";
import { until } from "./until.ts";

interface Place {
  readonly directory: Pick<TemporaryDirectory, "path" | "write">;
  /** Replaces the addresses of a file by those of this test. */
  readonly placed: (text: string) => string;
}

interface Asker {
  readonly program: string;
  /** Whether it waits for an answer for longer than a test does. */
  readonly isPatient?: boolean;
  /** Whether it removes the cookie of the session, and tokens in other places than `Authorization`. */
  readonly removesTokens?: boolean;
  /** Writes the configuration. @returns the arguments of the program. */
  readonly configure: (place: Place) => Promise<string[]>;
}

/** By the name that tests have. */
export const ASKERS: Readonly<Record<string, Asker>> = {
  nginx: {
    program: "nginx",
    async configure({ directory: { path, write }, placed }) {
      const places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
      const temp = places.map((name) => `${name}_temp_path ${path}/${name};`).join("\n");
      const start = `daemon off; pid ${path}/nginx.pid; error_log stderr warn; events {}`;
      const server = placed(shipped("nginx.conf"));
      const file = await write("nginx.conf", `${start} http { access_log off; ${temp} ${server} }`);
      return ["-p", path, "-c", file];
    },
  },
  Caddy: {
    program: "caddy",
    async configure({ directory: { path, write }, placed }) {
      const options = `{\nadmin off\nauto_https off\nstorage file_system ${path}/caddy\n}\n`;
      const file = await write("Caddyfile", options + placed(shipped("Caddyfile")));
      return ["run", "--config", file, "--adapter", "caddyfile"];
    },
  },
  HAProxy: {
    program: "haproxy",
    async configure({ directory: { write }, placed }) {
      const script = await write("sallyport.lua", placed(shipped("sallyport.lua")));
      const text = placed(shipped("haproxy.cfg")).replace("/etc/haproxy/sallyport.lua", script);
      return ["-db", "-f", await write("haproxy.cfg", text)];
    },
  },
  "Envoy over gRPC": {
    program: "envoy",
    removesTokens: true,
    async configure({ directory: { write }, placed }) {
      return envoyArguments(await write("envoy.yaml", placed(shipped("envoy.yaml"))));
    },
  },
  "Envoy over HTTP": {
    program: "envoy",
    async configure({ directory: { write }, placed }) {
      const bootstrap = parse(placed(shipped("envoy.yaml")));
      const { listeners, clusters } = bootstrap.static_resources;
      const manager = listeners[0].filter_chains[0].filters[0].typed_config;
      manager.http_filters[0] = parse(placed(shipped("envoy-http-filter.yaml")));
      const [early] = manager.early_header_mutation_extensions;
      early.typed_config.mutations.push(...parse(shipped("envoy-http-mutations.yaml")));
      delete clusters[0].typed_extension_protocol_options;
      return envoyArguments(await write("envoy.yaml", JSON.stringify(bootstrap)));
    },
  },
  // Nothing that .ci/run installs: its module takes ten minutes to build on two cores. Version 3.6.12 was run.
  Traefik: {
    program: "traefik",
    isPatient: true,
    async configure({ directory: { write }, placed }) {
      const file = await write("dynamic.yaml", placed(shipped("traefik.yaml")));
      return [
        `--entryPoints.web.address=${placed("127.0.0.1:8000")}`,
        `--providers.file.filename=${file}`,
        "--log.level=ERROR",
      ];
    },
  },
};

/** Returns why a proxy cannot run here; undefined if it can. */
export function missingAsker(name: string): string | undefined {
  return missing(ASKERS[name]?.program ?? name);
}

export interface RunningAsker extends AsyncDisposable {
  readonly port: number;
  /** What it has written so far. */
  readonly output: () => string;
}

/**
 * Starts a proxy.
 *
 * @param backend the address of the application. @param gate the port of Sallyport, which must answer /public/x by then.
 * @param edit changes the configuration.
 */
export async function startAsker(
  name: string,
  backend: string,
  gate: number,
  edit: (text: string) => string = (text) => text,
): Promise<RunningAsker> {
  const asker = ASKERS[name];
  if (asker === undefined) throw new Error(`no proxy ${name}`);
  const stack = new AsyncDisposableStack();
  try {
    const directory = stack.use(await temporaryDirectory());
    // When started by root, nginx runs as another user.
    await chmod(directory.path, 0o755);
    const port = await freePort();
    const ports = { port, backend: Number(new URL(backend).port), gate };
    const placed = (text: string): string => withPorts(edit(text), ports);
    const program = startProgram(asker.program, await asker.configure({ directory, placed }));
    stack.use(program);
    await until(async () => {
      if (program.exited()) throw new Error(program.output());
      return ask({ port }, "/public/x").then(
        ({ status }) => status === 200,
        () => false,
      );
    });
    const own = stack.move();
    return { port, output: program.output, [Symbol.asyncDispose]: () => own.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

/** Returns a shipped configuration for a proxy that listens on `port`, and asks Sallyport on `gate`. */
export function withPorts(
  text: string,
  { port, backend, gate }: Readonly<Record<"port" | "backend" | "gate", number>>,
): string {
  const ports = new Map([
    ["8000", port],
    ["8080", backend],
    ["8443", gate],
  ]);
  return text.replaceAll(
    /((?:127\.0\.0\.1|^http:\/\/)(?::|, port_value: ))(8000|8080|8443)\b/gm,
    (_all, before: string, known: string) => `${before}${ports.get(known)}`,
  );
}

function shipped(name: string): string {
  return readFileSync(join(ROOT, "deploy/proxies", name), "utf8");
}

function envoyArguments(file: string): string[] {
  const flags = ["--concurrency", "1", "--log-level", "error", "--use-dynamic-base-id"];
  // Otherwise its access log appears every ten seconds.
  return ["-c", file, ...flags, "--file-flush-interval-msec", "50"];
}
