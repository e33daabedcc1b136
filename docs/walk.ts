/**
 * Prints what one authenticated GET and one login execute of `src`, file by file: `npm run docs:walk`.
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

export interface Walks {
  readonly get: readonly WalkedFile[];
  readonly login: readonly WalkedFile[];
}

/** Requests before the recorded one: the first of a kind does what later ones do not. */
const WARM_UP = 10;
/** Long enough for all timers of an idle process, in milliseconds. */
const IDLE_MS = 6_000;
/** How long a request takes at most with all that follows its answer, in milliseconds. */
const REQUEST_MS = 300;

/** Starts the sources, and records one request of each kind. */
export async function recordWalks(): Promise<Walks> {
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
  return { get: walkedFiles(getting, idle), login: walkedFiles(loggingIn, idle) };
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
  const walks = await recordWalks();
  print("an authenticated GET", walks.get);
  print("a login", walks.login);
}
