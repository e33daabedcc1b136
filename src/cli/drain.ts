import { json } from "node:stream/consumers";
import { setTimeout as after } from "node:timers/promises";
import { request } from "../lib/node-http.ts";
import { type AdminAddress, configuredAddress, givenAddress } from "./admin-address.ts";
import { CONFIGURATION_FLAGS, CONFIGURATION_HELP, durationFlag, parseFlags } from "./arguments.ts";
import { type Command, EXIT } from "./command.ts";

const PATH = "/-/drain";
/** For one question, in milliseconds. */
const ANSWER_MS = 3_000;
const ASK_EVERY_MS = 100;
/** For what a drain needs beyond the times of the configuration, in milliseconds. */
const MARGIN_MS = 5_000;
/** As long as a drain with the times that are set when nothing is configured. */
const DEFAULT_TIMEOUT_MS = 30_000;

export const drain: Command = {
  help: `Usage: sallyport drain [options]

Has a running proxy end its traffic as it does on SIGTERM, and waits until nothing runs any more: exit
code 0 then, 1 when it cannot be asked or takes longer. The proxy itself goes on until SIGTERM, which
ends it at once then. Meant for preStop. It is asked on the address of admin.listen; without a
configuration file, on 127.0.0.1:9464.

${CONFIGURATION_HELP}
      --url URL         asks there and reads no configuration: http://127.0.0.1:9464, say
      --timeout TIME    how long to wait, such as 30s (default: server.drain.delay and
                        server.drain.timeout together, and 5s)
  -h, --help            this text`,
  async run(args, terminal) {
    const flags = parseFlags(args, {
      ...CONFIGURATION_FLAGS,
      url: { type: "string" },
      timeout: { type: "string" },
    });
    const { timeout } = flags;
    const chosen = timeout === undefined ? undefined : durationFlag("timeout", timeout);
    const address =
      flags.url === undefined
        ? await configuredAddress(flags, terminal, PATH)
        : givenAddress(flags.url, PATH);
    const limitMs = chosen ?? expectedMs(address);
    const deadline = performance.now() + limitMs;
    let state = await stateFrom(address.url, "POST");
    while (state !== "drained") {
      if (performance.now() > deadline) throw new Error(`still ${state} after ${limitMs} ms`);
      await after(ASK_EVERY_MS);
      state = await stateOrEnd(address.url);
    }
    terminal.out("drained\n");
    return EXIT.done;
  },
};

function expectedMs({ configuration }: AdminAddress): number {
  if (configuration === undefined) return DEFAULT_TIMEOUT_MS;
  const { delay, timeout } = configuration.server.drain;
  return delay + timeout + MARGIN_MS;
}

/** A proxy that was told to stop meanwhile has gone when it was drained. */
async function stateOrEnd(url: URL): Promise<string> {
  try {
    return await stateFrom(url, "GET");
  } catch (error) {
    const gone = error instanceof Error && "code" in error && GONE.includes(String(error.code));
    if (gone) return "drained";
    throw error;
  }
}

const GONE = ["ECONNREFUSED", "ECONNRESET"];

/** @throws the system's error when nobody answers, or an error with what was answered instead of a state. */
async function stateFrom(url: URL, method: string): Promise<string> {
  const signal = AbortSignal.timeout(ANSWER_MS);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const asked = request(url, { method, agent: false, signal }, (response) => {
    const { statusCode = 0 } = response;
    json(response).then(
      (body) => {
        const state = statusCode < 300 ? stateIn(body) : undefined;
        if (state === undefined) reject(new Error(`${url.href} says ${statusCode}`));
        else resolve(state);
      },
      () => reject(new Error(`${url.href} says ${statusCode}`)),
    );
  });
  asked.on("error", (error) => {
    reject(signal.aborted ? new Error(`${url.href} says nothing within ${ANSWER_MS} ms`) : error);
  });
  asked.end();
  return promise;
}

function stateIn(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null || !("state" in body)) return undefined;
  return typeof body.state === "string" ? body.state : undefined;
}
