import type { StreamAnswer } from "../../tools/selftest/http2/framed-session.ts";
import type { Arrival } from "../backend/arrivals.ts";
import { ANSWER_FIELD } from "../backend/backend.ts";
import type { Subject } from "../subject/subject.ts";
import { isOver, type StreamTalk } from "../wire/converse-streams.ts";
import { type Fields, valuesOf } from "../wire/head.ts";
import type { ReadStream } from "../wire/streams.ts";
import { type Fault, fault } from "./fault.ts";
import { judgeForwarded, show } from "./forwarded.ts";
import { isOrdinary, judgeUnanswered, LATE_MS } from "./judge.ts";
import { judgeOwnAnswer } from "./own-answer.ts";
import { splitTarget } from "./paths.ts";

/** Compares what happened on the streams of a connection with what the client sent on them. */
export function judgeStreams(
  { client, reading, streamAnswers, ended, writtenMs }: StreamTalk,
  arrivals: readonly Arrival[],
  subject: Subject,
): Fault[] {
  const { streams, clean } = reading;
  const faults: Fault[] = [];
  const unexplained = new Set(arrivals);
  for (const [number, answer] of streamAnswers) {
    if (answer.status === 0) continue;
    const stream = streams.find((each) => each.number === number);
    const told = Number(valuesOf(fieldsOf(answer), ANSWER_FIELD.toLowerCase())[0] ?? 0);
    const arrival = arrivals.find((each) => each.number === told);
    if (stream === undefined) {
      faults.push(fault("mixed", `an answer on stream ${number}, where nothing was sent`));
    } else if (told === 0) {
      if (subject.keepsContract) faults.push(...judgeOwn(stream, answer, clean, subject));
    } else if (
      arrival === undefined ||
      stream.request === undefined ||
      !unexplained.delete(arrival)
    ) {
      faults.push(fault("mixed", `stream ${number} got the answer to request ${told}`));
    } else {
      faults.push(...judgeForwarded(arrival, stream.request, client, subject));
      faults.push(...judgeBody(answer, stream, told));
    }
  }
  const isOwed = clean && writtenMs < LATE_MS;
  for (const stream of isOwed ? streams.filter(({ owed }) => owed) : []) {
    const answer = streamAnswers.get(stream.number);
    if (answer === undefined || (answer.status !== 0 && isOver(answer))) continue;
    const end = ended
      ? `the connection ended (${Math.round(writtenMs)} ms)`
      : `reset: ${answer.reset ?? "no"}`;
    faults.push(fault("silence", `no answer on stream ${stream.number}, ${end}`));
  }
  const sent = streams.flatMap(({ request }) => (request === undefined ? [] : [request]));
  return [...faults, ...judgeUnanswered([...unexplained], sent, client, subject)];
}

/** Checks that the body of an answer names its request. */
function judgeBody(
  { body, complete, status }: StreamAnswer,
  stream: ReadStream,
  told: number,
): Fault[] {
  const wanted = stream.method === "HEAD" || status === 204 ? "" : `answer ${told}`;
  const right = complete ? body === wanted : wanted.startsWith(body);
  return right ? [] : [fault("mixed", `stream ${stream.number} got ${show(body)}`)];
}

function judgeOwn(
  { request, method, number, owed }: ReadStream,
  answer: StreamAnswer,
  clean: boolean,
  subject: Subject,
): Fault[] {
  const { status, body, complete } = answer;
  const path = splitTarget(request?.target ?? "").path;
  const own = { status, body, fields: fieldsOf(answer), trailers: [] };
  const faults = complete ? judgeOwnAnswer(own, request?.method, path, false) : [];
  const late = status === 408;
  if (clean && owed && !late && request !== undefined && isOrdinary(request, subject)) {
    faults.push(fault("needless", `${status} for ${method} ${request.target} (${number})`));
  }
  return faults;
}

function fieldsOf({ fields }: StreamAnswer): Fields {
  return Array.from({ length: fields.length / 2 }, (_, i) => [
    fields[2 * i] ?? "",
    fields[2 * i + 1] ?? "",
  ]);
}
