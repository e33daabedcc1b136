/**
 * Prints what one authenticated GET and one login execute of `src`, file by file: `npm run docs:walk`. First the story,
 * which is what acts on the request; then the guards around it.
 *
 * Each goes over a new TLS connection, and the token of the GET is in the cache.
 */
import { once } from "node:events";
import { request } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { startEchoBackend } from "../test/support/echo-backend.ts";
import { SOURCES } from "../test/support/entry.ts";
import { ALICE, type Sallyport, startSallyport } from "../test/support/sallyport.ts";
import { type WalkedFile, walkedFiles, WalkRecorder } from "../test/support/walk.ts";

/** The files and folders that guard, count or carry a request and do not act on it. All others are the story. */
export const GUARDS: Readonly<Record<string, readonly string[]>> = {
  "fair reading": ["src/server/listener/reading/", "src/lib/http/networks.ts"],
  "bounds of connections": [
    "src/server/listener/open-connections.ts",
    "src/server/listener/listening-sockets.ts",
    "src/server/listener/create-server.ts",
    "src/lib/node-internals/",
  ],
  "the ledger of buffered bytes": [
    "src/server/listener/connection-ledger.ts",
    "src/server/request/tracked-response.ts",
  ],
  pipelining: ["src/server/listener/pipelining.ts"],
  "lingering close": ["src/server/listener/discard-body.ts"],
  "ends and limits": [
    "src/server/request/stream-ends.ts",
    "src/core/request/transfer.ts",
    "src/credentials/throttle/",
    "src/lib/async/",
    "src/core/thread-rpc.ts",
    "src/lib/clock.ts",
  ],
  "proofs that cannot be forged": [
    "src/core/request/gate-request.ts",
    "src/core/request/permit.ts",
    "src/tokens/verify/verified-token.ts",
  ],
  "the generation in force": ["src/app/"],
  "connections to a backend": [
    "src/upstream/http1/connect.ts",
    "src/upstream/http1/http1-pool.ts",
    "src/upstream/http1/response-parser.ts",
    "src/upstream/pool/in-flight-counts.ts",
    "src/upstream/http/scavenger.ts",
  ],
  "small helpers": [
    "src/lib/text/",
    "src/lib/http/response-ids.ts",
    "src/upstream/headers/rewrite.ts",
  ],
  "metrics and log": ["src/observe/"],
};

const guarding = Object.values(GUARDS).flat();

function isGuard(file: string): boolean {
  return guarding.some((place) => (place.endsWith("/") ? file.startsWith(place) : file === place));
}

interface Walk {
  readonly story: readonly WalkedFile[];
  readonly guards: readonly WalkedFile[];
}

function walkOf(...recorded: Parameters<typeof walkedFiles>): Walk {
  const { story = [], guards = [] } = Object.groupBy(walkedFiles(...recorded), ({ file }) =>
    isGuard(file) ? "guards" : "story",
  );
  return { story, guards };
}

/** Requests before the recorded one: the first of a kind does what later ones do not. */
const WARM_UP = 10;
/** Long enough for all timers of an idle process, in milliseconds. */
const IDLE_MS = 6_000;
/** How long a request takes at most with all that follows its answer, in milliseconds. */
const REQUEST_MS = 300;

/** Starts the sources, and records one request of each kind. */
export async function recordWalks(): Promise<Record<"get" | "login", Walk>> {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({
    target: backend.url,
    flags: ["--inspect=127.0.0.1:0"],
    entry: SOURCES,
  });
  const logIn = (): Promise<string> => gate.login(ALICE.username, ALICE.password);
  for (let i = 0; i < WARM_UP; i += 1) await get(gate);
  await logIn();
  const recorder = await WalkRecorder.attach(/ws:\/\/\S+/.exec(gate.stderr())?.[0] ?? "");
  const take = async (act: () => Promise<unknown>): ReturnType<WalkRecorder["take"]> => {
    await recorder.take();
    await act();
    return recorder.take();
  };
  const idle = await take(() => delay(IDLE_MS));
  const getting = await take(() => get(gate).then(() => delay(REQUEST_MS)));
  const loggingIn = await take(() => logIn().then(() => delay(REQUEST_MS)));
  recorder.close();
  return { get: walkOf(getting, idle), login: walkOf(loggingIn, idle) };
}

async function get({ port, ca, token }: Sallyport): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const sent = request({ host: "127.0.0.1", port, ca, agent: false, path: "/orders", headers });
  sent.end();
  const [response] = await once(sent, "response");
  response.resume();
  await once(response, "close");
}

/** The number of functions and of lines in all files together. */
export function sumOf(walk: readonly WalkedFile[]): { functions: number; lines: number } {
  return {
    functions: walk.reduce((sum, { functions }) => sum + functions.length, 0),
    lines: walk.reduce((sum, { lines }) => sum + lines, 0),
  };
}

function print(title: string, walk: readonly WalkedFile[]): void {
  const { functions, lines } = sumOf(walk);
  console.log(`${title}: ${walk.length} files, ${functions} functions, ${lines} lines`);
  for (const { file, lines, functions } of walk) {
    console.log(`  ${String(lines).padStart(4)}  ${file}: ${functions.join(", ")}`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { get, login } = await recordWalks();
  print("the story of an authenticated GET", get.story);
  print("its guards", get.guards);
  print("the story of a login", login.story);
  print("its guards", login.guards);
}
