import type { Arrival } from "../backend/arrivals.ts";
import { ANSWER_FIELD } from "../backend/backend.ts";
import { BODY_BYTES } from "../subject/sallyport.ts";
import type { Subject } from "../subject/subject.ts";
import type { Answer } from "../wire/answers.ts";
import type { Talk } from "../wire/converse.ts";
import { connectionOptions, valuesOf } from "../wire/head.ts";
import type { Reading, ReadRequest } from "../wire/requests.ts";
import { type Fault, fault } from "./fault.ts";
import { hasToken, judgeForwarded, show } from "./forwarded.ts";
import { judgeOwnAnswer } from "./own-answer.ts";
import { isPublic, isSame, splitTarget } from "./paths.ts";

/** After this time, the shortest of the proxy's limits may end a connection, in milliseconds: a busy machine slows clients. */
export const LATE_MS = 800;

/** Everything that is known about a finished case. */
export interface Played {
  readonly talk: Talk;
  readonly arrivals: readonly Arrival[];
}

/** Compares what happened with what the client sent. */
export function judge({ talk, arrivals }: Played, subject: Subject): Fault[] {
  const { client, reading, answers } = talk;
  const { requests, begun } = reading;
  const sent = begun === undefined ? requests : [...requests, begun];
  const faults = judgeEnd(talk);
  const unexplained = new Set(arrivals);
  for (const [index, answer] of answers.whole.entries()) {
    const request = sent[index];
    const number = Number(valuesOf(answer.fields, ANSWER_FIELD.toLowerCase())[0] ?? 0);
    if (number === 0) {
      if (subject.keepsContract) faults.push(...judgeOwn(answer, index, talk, subject));
      continue;
    }
    const arrival = arrivals.find((each) => each.number === number);
    if (arrival === undefined || request === undefined || !unexplained.delete(arrival)) {
      faults.push(
        fault("mixed", `answer ${index + 1} is that to request ${number} of the backend`),
      );
    } else {
      faults.push(...judgeForwarded(arrival, request, client, subject));
      faults.push(...judgeTunnel(arrival, talk));
    }
  }
  return [...faults, ...judgeUnanswered([...unexplained], sent, client, subject)];
}

/**
 * Judges requests that arrived but whose answers the client did not get: each must be one that it sent. They may be in any
 * order, since several of one connection may be in progress at once.
 */
export function judgeUnanswered(
  arrivals: readonly Arrival[],
  sent: readonly ReadRequest[],
  client: string,
  subject: Subject,
): Fault[] {
  const left = new Set(sent);
  // Complete ones first: they can only match requests that were sent completely.
  const inOrder = arrivals.toSorted((a, b) => Number(isCut(a)) - Number(isCut(b)));
  return inOrder.flatMap((arrival) => {
    const { method, target, body } = arrival.request;
    const candidates = [...left].filter(
      (each) =>
        each.method === method &&
        isSame(each.target, target) &&
        (body === undefined || each.body !== undefined),
    );
    const judged = candidates.map((each) => ({
      each,
      faults: judgeForwarded(arrival, each, client, subject),
    }));
    const best = judged.find(({ faults }) => faults.length === 0) ?? judged[0];
    if (best === undefined) {
      return [fault("smuggled", `${method} ${show(target)} ${show(body ?? "(incomplete)")}`)];
    }
    left.delete(best.each);
    return best.faults;
  });
}

function isCut({ request }: Arrival): boolean {
  return request.body === undefined;
}

function judgeEnd({ reading, answers, ended, handshakeMs }: Talk): Fault[] {
  const faults: Fault[] = [];
  if (ended === "deadline") faults.push(fault("silence", "the connection did not end"));
  if (answers.stop === "unclear") faults.push(fault("answer", `no HTTP: ${show(answers.rest)}`));
  if (answers.stop === "incomplete") faults.push(fault("answer", `cut: ${show(answers.rest)}`));
  const said = answers.whole.findIndex(closes);
  if (said !== -1 && said < answers.whole.length - 1) {
    faults.push(fault("mixed", "an answer after the last one"));
  }
  const owed = isWhole(reading) ? reading.requests.length : 0;
  if (answers.whole.length < owed && said === -1 && handshakeMs < LATE_MS) {
    faults.push(fault("silence", `${answers.whole.length} answers to ${owed} requests (${ended})`));
  }
  // Unreadable bytes may be refused after the request that contains them was answered.
  const { begun, stop } = reading;
  const most = reading.requests.length + (begun === undefined ? 0 : 1) + (stop === "end" ? 0 : 1);
  if (answers.whole.length > most) {
    faults.push(fault("mixed", `${answers.whole.length} answers to ${most} requests`));
  }
  return faults;
}

/**
 * Whether every request must get its own answer: garbage after a request may be refused instead, while that is in progress,
 * and so may trailers.
 */
function isWhole({ stop, rest, requests }: Reading): boolean {
  const ended = stop === "end" || (stop === "closed" && rest === "");
  return ended && requests.every(({ trailers }) => trailers.length === 0);
}

function closes({ fields }: Answer): boolean {
  return connectionOptions(fields).includes("close");
}

function judgeOwn(
  answer: Answer,
  index: number,
  { reading, methods }: Talk,
  subject: Subject,
): Fault[] {
  const { begun, requests } = reading;
  const request = requests[index] ?? (index === requests.length ? begun : undefined);
  const path = request === undefined ? "" : splitTarget(request.target).path;
  const faults = judgeOwnAnswer(answer, methods[index], path, true);
  // On a busy machine a client may be too slow for limits as short as these.
  const late = answer.status === 408;
  if (!late && isWhole(reading) && request !== undefined && isOrdinary(request, subject)) {
    faults.push(fault("needless", `${answer.status} for ${request.method} ${request.target}`));
  }
  return faults;
}

/** Whether nothing is wrong with a request, so that it must be forwarded. */
export function isOrdinary(request: ReadRequest, subject: Subject): boolean {
  const { method, target, fields, body = "", switches } = request;
  const { path } = splitTarget(target);
  const size = fields.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
  return (
    /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$/.test(method) &&
    /^(?:\/[A-Za-z0-9-]+)+$/.test(target) &&
    !/^\/api(?:\/|$)/.test(path) &&
    fields.length <= 60 &&
    size < 12_000 &&
    body.length <= BODY_BYTES &&
    !switches &&
    valuesOf(fields, "expect").length === 0 &&
    (isPublic(path) || hasToken(request, subject))
  );
}

/** After a switch of protocols, the bytes of both sides must pass unchanged. */
function judgeTunnel({ tunnel }: Arrival, { reading, answers }: Talk): Fault[] {
  if (tunnel === undefined) return [];
  const faults: Fault[] = [];
  if (!reading.rest.startsWith(tunnel)) faults.push(fault("body", `through: ${show(tunnel)}`));
  if (!tunnel.startsWith(answers.rest)) faults.push(fault("mixed", `back: ${show(answers.rest)}`));
  return faults;
}
