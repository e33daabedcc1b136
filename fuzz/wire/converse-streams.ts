import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { FramedSession, type StreamAnswer } from "../../tools/selftest/http2/framed-session.ts";
import { type Case, DEADLINE_MS, PATIENCE_MS } from "./converse.ts";
import { admitted, dialled, type Listener, PLAIN } from "./dial.ts";
import { type ReadStream, type ReadStreams, readStreams } from "./streams.ts";

/** The result of an HTTP/2 connection. */
export interface StreamTalk {
  /** The address that the proxy must take for the client's. */
  readonly client: string;
  readonly reading: ReadStreams;
  /** By stream number. */
  readonly streamAnswers: ReadonlyMap<number, StreamAnswer>;
  /** The number of streams that got an answer. */
  readonly answered: number;
  /** Whether the other side has ended the connection. */
  readonly ended: boolean;
  /** When everything was written, in milliseconds after the beginning. */
  readonly writtenMs: number;
}

/** Streams above this number are ignored. */
const MAX_STREAM = 41;

/** Plays a case whose rounds are frames. */
export async function converseStreams(
  listener: Listener,
  localAddress: string,
  play: Case,
): Promise<StreamTalk> {
  const { dial = PLAIN, rounds } = play;
  const heard = admitted(dial, localAddress, rounds.flat().join(""), true);
  const reading: ReadStreams =
    heard === undefined ? { streams: [], clean: false } : readStreams(heard.text);
  const methods = methodsOf(reading.streams);
  const began = performance.now();
  const socket = dialled(listener, localAddress, dial);
  socket.on("error", () => undefined);
  if (dial.secure) await soon(once(socket, "secureConnect"));
  const session = new FramedSession(socket, methods);
  const answerOn = (number: number): StreamAnswer | undefined => session.answers[(number - 1) / 2];
  const over = (streams: readonly ReadStream[]): boolean =>
    session.ended || streams.every(({ number }) => isOver(answerOn(number)));
  await soon(session.begun);
  let written = "";
  for (const [index, round] of rounds.entries()) {
    if (index > 0) await until(session, () => over(readStreams(written).streams), PATIENCE_MS);
    written += round.join("");
    for (const piece of round) session.send(Buffer.from(piece, "latin1"));
  }
  const writtenMs = performance.now() - began;
  if (reading.clean)
    await until(session, () => over(reading.streams.filter(({ owed }) => owed)), DEADLINE_MS);
  await until(session, () => over(reading.streams), PATIENCE_MS);
  const { answers, ended } = session;
  session.close();
  const streamAnswers = new Map(answers.map((each, i) => [2 * i + 1, each]));
  const answered = answers.filter(({ status }) => status !== 0).length;
  return {
    client: heard?.client ?? localAddress,
    reading,
    streamAnswers,
    answered,
    ended,
    writtenMs,
  };
}

export function isOver(answer: StreamAnswer | undefined): boolean {
  return answer === undefined || answer.complete || answer.reset !== undefined;
}

/** Returns the methods of the streams 1, 3, 5… */
function methodsOf(streams: readonly ReadStream[]): string[] {
  const numbers = streams.map(({ number }) => number).filter((number) => number <= MAX_STREAM);
  const count = (Math.max(0, ...numbers) + 1) / 2;
  return Array.from(
    { length: Math.floor(count) },
    (_, i) => streams.find(({ number }) => number === 2 * i + 1)?.method ?? "GET",
  );
}

/** Waits for an event for a limited time: a connection that fails, or never begins, is used as far as possible. */
async function soon(event: Promise<unknown>): Promise<void> {
  const settled = event.then(
    () => undefined,
    () => undefined,
  );
  await Promise.race([settled, delay(10 * PATIENCE_MS, undefined, { ref: false })]);
}

async function until(session: FramedSession, met: () => boolean, limitMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, limitMs);
  session.onChange = () => {
    if (met()) resolve();
  };
  session.onChange();
  await promise;
  clearTimeout(timer);
  session.onChange = () => undefined;
}
