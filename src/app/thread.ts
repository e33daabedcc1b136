import { parentPort, workerData } from "node:worker_threads";
import type { Configuration } from "../config/schema.ts";
import { GateError } from "../core/errors.ts";
import type { LoginService } from "../core/login-service.ts";
import { systemClock } from "../lib/clock.ts";
import { responseIds } from "../lib/response-ids.ts";
import { createLog } from "../observe/application-log.ts";
import type { LogSink } from "../observe/log-sink.ts";
import { createMetrics } from "../observe/metrics.ts";
import { createObserver } from "../observe/observer.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import { HeldKeys } from "../tokens/own-keys.ts";
import { seriesOf, type ServerTls } from "./from-configuration.ts";
import { ReloadStates } from "./reload-states.ts";
import type { FromThread, PostedFailure, PostedLogin, ToThread } from "./thread-messages.ts";
import { PreparedChange } from "./thread-change.ts";
import { startTraffic } from "./traffic.ts";

/** What a traffic thread is started with. */
export interface ThreadBeginnings {
  readonly configuration: Configuration;
  readonly version: string;
  readonly ring: KeyRing;
  readonly tls: ServerTls;
  readonly port: number;
  readonly index: number;
  readonly count: number;
}

/** How long log lines wait for company before they are posted, in milliseconds. */
const LOG_BATCH_MS = 20;

/** Log lines go out through the main thread, so that lines of two threads never mix. */
function postedSink(post: (message: FromThread) => void): LogSink {
  let lines: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (lines.length > 0) post({ kind: "log", lines });
    lines = [];
  };
  const write = (line: string): void => {
    lines.push(line);
    timer ??= setTimeout(flush, LOG_BATCH_MS);
  };
  return {
    write,
    writeBytes: (line) => write(line.toString()),
    flush,
    drain: async () => flush(),
    dropped: () => 0,
  };
}

/** People log in in the main thread, where the throttle and the hashing threads are. */
class RemoteLogins implements LoginService {
  readonly #waiting = new Map<number, PromiseWithResolvers<string>>();
  readonly #post: (message: FromThread) => void;
  #calls = 0;

  constructor(post: (message: FromThread) => void) {
    this.#post = post;
  }

  logIn(username: string, password: string, client: string): Promise<string> {
    this.#calls += 1;
    const waiting = Promise.withResolvers<string>();
    this.#waiting.set(this.#calls, waiting);
    const attempt: PostedLogin = { username, password, client };
    this.#post({ kind: "logIn", call: this.#calls, attempt });
    return waiting.promise;
  }

  take(message: Extract<ToThread, { kind: "loggedIn" | "notLoggedIn" }>): void {
    const waiting = this.#waiting.get(message.call);
    this.#waiting.delete(message.call);
    if (message.kind === "loggedIn") waiting?.resolve(message.token);
    else waiting?.reject(revive(message.failure));
  }
}

function revive({ code, message, reason, retryAfter }: PostedFailure): GateError {
  return new GateError(code, {
    message,
    ...(reason === undefined ? {} : { reason }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  });
}

async function runThread(beginnings: ThreadBeginnings): Promise<void> {
  const post = (message: FromThread): void => parentPort?.postMessage(message);
  const { configuration, version, ring, tls, port, index, count } = beginnings;
  const clock = systemClock;
  const keys = new HeldKeys(ring, clock);
  const { level } = configuration.log;
  const sink = postedSink(post);
  const log = createLog({ sink, level, clock });
  const metrics = createMetrics({
    ...seriesOf(configuration),
    version,
    clock,
    process: false,
  });
  const observer = createObserver({ metrics, sink, clock, level });
  const logins = new RemoteLogins(post);
  const reloads = new ReloadStates((successful) => post({ kind: "reloaded", successful }));
  const traffic = await startTraffic({
    ...{ configuration, version, keys, tls, port, logins, reloads, clock, log, observer },
    shared: true,
    nextId: responseIds(clock.now(), index, count),
  });
  // Not before: a thread that cannot start has to end.
  const survive = (error: unknown): void => log.error("an error was not caught", { error });
  process.on("uncaughtException", survive).on("unhandledRejection", survive);
  metrics.gauges.tokenCacheEntries = traffic.tokenCacheEntries;
  metrics.gauges.upstreamLoad = traffic.upstreamLoad;
  const changes = new PreparedChange(traffic, metrics, post);
  parentPort?.on("message", (message: ToThread) => {
    switch (message.kind) {
      case "drain":
        void traffic.drain().then(async (finished) => {
          const shown = await metrics.json();
          sink.flush();
          post({ kind: "drained", finished, metrics: shown });
          parentPort?.close();
        });
        break;
      case "prepare":
        changes.prepare(message);
        break;
      case "commit":
        changes.commit();
        break;
      case "drop":
        changes.drop();
        break;
      case "keys":
        keys.replace(message.ring);
        break;
      case "scrape": {
        const { call } = message;
        void metrics.json().then((shown) => post({ kind: "metrics", call, metrics: shown }));
        break;
      }
      case "loggedIn":
      case "notLoggedIn":
        logins.take(message);
        break;
    }
  });
  post({ kind: "listening", address: traffic.address, port: traffic.port });
}

const beginnings: ThreadBeginnings = workerData;
await runThread(beginnings);
